// The inner loops around the products of matrices, compiled for several instruction sets.
//
// A *run* is the elements of all alpha orbitals of one irrep that belong to one beta string: neighbours in
// the copy of a vector that is made for one hole of alpha electrons.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/instruction_sets.hpp"

namespace outcore::chem::ci {

/// A run of a copy, and the sign of what is created: the highest bit is set if it is -1.
using Run = std::uint32_t;
inline constexpr Run negative = Run{1} << 31;

template <class Real>
struct RunLoops {
  // For holes k of beta electrons and orbitals s: run s of line k = sign * run table[k][s] of x.
  void (*gather)(Real* lines, std::size_t line_stride, const Real* x, const Run* table,
                 std::size_t table_stride, std::size_t holes, int orbitals, int length);
  // The reverse: run table[k][s] of y += sign * run s of line k.
  void (*scatter)(Real* y, const Real* lines, std::size_t line_stride, const Run* table,
                  std::size_t table_stride, std::size_t holes, int orbitals, int length);
  // plus[c] = line[left[c]] + line[right[c]], minus[c] = their difference, for c < n_minus; plus[c] = twice
  // line[left[c]] for the others. `in_order`: left[c] == c.
  void (*combine)(const Real* line, const std::int32_t* left, const std::int32_t* right, int n_minus,
                  int n_plus, bool in_order, Real* plus, Real* minus);
  // line[left[c]] = plus[c] + minus[c], line[right[c]] = plus[c] - minus[c]; line[left[c]] = plus[c] for the
  // others.
  void (*split)(const Real* plus, const Real* minus, const std::int32_t* left, const std::int32_t* right,
                int n_minus, int n_plus, bool in_order, Real* line);
  // x[b * length + c] = signs[c] * rows[c][b], or 0 where rows[c] is null.
  void (*interleave)(Real* x, const Real* const* rows, const Real* signs, int length, std::size_t columns);
  // row[b] += sign * y[b * length].
  void (*add_strided)(Real* row, const Real* y, int length, Real sign, std::size_t columns);
  // out[i] = factor[i] * row[at[i]]
  void (*select)(Real* out, const Real* row, const std::int32_t* at, const Real* factor, int count);
  // to[i] += from[i]
  void (*add)(Real* to, const Real* from, std::size_t count);
};

struct RunKernels {
  RunLoops<double> f64;
  RunLoops<float> f32;
};

OUTCORE_KERNELS(RunKernels, run_kernels);

template <class Real>
[[nodiscard]] const RunLoops<Real>& run_loops() noexcept {
  if constexpr (sizeof(Real) == sizeof(double))
    return run_kernels().f64;
  else
    return run_kernels().f32;
}

}  // namespace outcore::chem::ci
