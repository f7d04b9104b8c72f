// Inner loops that are compiled for several instruction sets, and the choice among them.
//
// A method declares a table of functions and its variants, in a header:
//
//   struct Kernels { void (*scale)(double* x, std::size_t length, double factor); };
//   OUTCORE_KERNELS(Kernels, kernels);
//
// writes a body that is compiled once for each instruction set,
//
//   namespace { void scale(double* x, std::size_t length, double factor) { ... } }
//   const Kernels OUTCORE_VARIANT(kernels) = {scale};
//
// names it in CMake, `outcore_kernels(outcore src/chem/hf/kernels_body.hpp)`, and calls
// `kernels().scale(...)`. In the body OUTCORE_LANE is the number of doubles in a register. A body must not
// use inline functions from elsewhere, those of the standard library included: the linker might keep a copy
// that other processors cannot run.
#pragma once

#include <cstddef>

namespace outcore {

/// What this library has code for; those above `any` are of x86-64 only.
enum class InstructionSet { any, avx2, avx512 };

[[nodiscard]] constexpr const char* name(InstructionSet set) noexcept {
  return set == InstructionSet::avx512 ? "AVX-512" : set == InstructionSet::avx2 ? "AVX2" : "any";
}

/// Whether this processor and its operating system support it.
[[nodiscard]] inline bool runs(InstructionSet set) noexcept {
#ifdef OUTCORE_X86
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (set == InstructionSet::avx2) return avx2;
  if (set == InstructionSet::avx512)
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#endif
  return set == InstructionSet::any;
}

/// One table for each instruction set that was compiled, from the simplest to the best.
template <class Table>
struct KernelVariant {
  InstructionSet set;
  const Table& table;
};

/// The best of some variants that runs here; the first runs everywhere.
template <class Table, std::size_t count>
[[nodiscard]] const Table& best(const KernelVariant<Table> (&variants)[count]) noexcept {
  std::size_t at = count - 1;
  while (at > 0 && !runs(variants[at].set)) --at;
  return variants[at].table;
}

}  // namespace outcore

// name() is the best table, chosen once; name_variants are all of them.
#ifdef OUTCORE_X86
#define OUTCORE_KERNELS(Table, name)                                 \
  extern const Table name##_any, name##_avx2, name##_avx512;         \
  inline const ::outcore::KernelVariant<Table> name##_variants[] = { \
      {::outcore::InstructionSet::any, name##_any},                  \
      {::outcore::InstructionSet::avx2, name##_avx2},                \
      {::outcore::InstructionSet::avx512, name##_avx512}};           \
  OUTCORE_BEST_KERNELS(Table, name)
#else
#define OUTCORE_KERNELS(Table, name)                                 \
  extern const Table name##_any;                                     \
  inline const ::outcore::KernelVariant<Table> name##_variants[] = { \
      {::outcore::InstructionSet::any, name##_any}};                 \
  OUTCORE_BEST_KERNELS(Table, name)
#endif

#define OUTCORE_BEST_KERNELS(Table, name)                          \
  [[nodiscard]] inline const Table& name() noexcept {              \
    static const Table& chosen = ::outcore::best(name##_variants); \
    return chosen;                                                 \
  }                                                                \
  static_assert(true)

// In a body: the name of this instruction set's table. OUTCORE_INSTRUCTION_SET and OUTCORE_LANE come from
// CMake.
#define OUTCORE_VARIANT(name) OUTCORE_JOINED(name, OUTCORE_INSTRUCTION_SET)
#define OUTCORE_JOINED(name, set) OUTCORE_JOINED_WORDS(name, set)
#define OUTCORE_JOINED_WORDS(name, set) name##_##set
