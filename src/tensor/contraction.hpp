// Contractions of dense arrays by native code alone, for C and Fortran. Python makes better plans, and runs
// them by the same loop of a product.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/blas.hpp"
#include "outcore/einsum.hpp"
#include "tensor/contraction_plan.hpp"

namespace outcore::tensor {

/// An array of a contraction, which the caller keeps: `global`, `disk`, or memory of each process. Memory of
/// an operand has the same elements at each process; that of a result receives all elements.
struct Operand {
  GlobalArray* global = nullptr;
  DiskArray* disk = nullptr;
  Strided memory = {};
  Extents shape = {};                       ///< of memory
  ElementType type = ElementType::float64;  ///< of memory

  [[nodiscard]] Facts facts() const;
};

struct ContractionOptions {
  std::int64_t memory_bytes =
      0;                  ///< of each process, for panels and intermediate arrays; 0: 3/4 of what is left
  std::string plan = {};  ///< empty: `simple_plan`
  const void* scale = nullptr;  ///< factor of the product, one element; null: one
  bool accumulate = false;      ///< add to the elements of the result
  int threads = 1;              ///< of each process
};

/// The arguments of a caller, made in the gate of the collective call.
struct ContractionArguments {
  std::string subscripts;
  std::vector<Operand> operands;
  Operand out;
  ContractionOptions options;
};
using MakeArguments = std::function<ContractionArguments()>;

/// out = scale times the sum of products of the operands, or out += that. All elements have one type:
/// float32, float64, complex64 or complex128. Collective. Throws, the same at all processes, Error(EINVAL)
/// for arguments that do not fit or that differ, Error(ENOMEM) if the memory is too small, and the errors of
/// moving elements.
EinsumCounts contract(World& world, const Blas& blas, const MakeArguments& make);

/// The plan that `contract` would carry out. Collective.
[[nodiscard]] Plan plan_of(World& world, const MakeArguments& make);

}  // namespace outcore::tensor
