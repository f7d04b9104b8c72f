// The inner loops around the products of matrices, compiled for several instruction sets.
//
// A *run* has the elements of one beta string for all alpha orbitals of one irrep. They are neighbours in the
// copy of a vector that is made for one alpha hole. A *line* has the elements of one pair of orbitals for
// many beta holes. They are neighbours in the matrices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/instruction_sets.hpp"

namespace outcore::chem::ci {

/// A run of a copy, and a sign: the highest bit is set if the creation of the electron gives -1.
using Run = std::uint32_t;
inline constexpr Run negative = Run{1} << 31;

/// Number of elements behind an array of runs, and of holes behind the last one of a line, that loops may
/// touch.
inline constexpr int run_margin = 16;

template <class Real>
struct RunLoops {
  // Runs of holes k and orbitals s become lines: lines[(s * length + c) * stride + k] =
  // sign * x[run * length + c] with run and sign of table[k * table_stride + s].
  void (*gather)(Real* lines, std::size_t stride, const Real* x, const Run* table, std::size_t table_stride,
                 std::size_t holes, int orbitals, int length);
  // The reverse: y[run * length + c] += sign * lines[(s * length + c) * stride + k].
  void (*scatter)(Real* y, const Real* lines, std::size_t stride, const Run* table, std::size_t table_stride,
                  std::size_t holes, int orbitals, int length);
  // plus = a + b, minus = a - b, of `count` elements; with a == b, plus alone, if `minus` is null.
  void (*combine)(const Real* a, const Real* b, Real* plus, Real* minus, std::size_t count);
  // x[b * length + c] = signs[c] * rows[c][b], or 0 where rows[c] is null. May set elements behind x to 0.
  void (*interleave)(Real* x, const Real* const* rows, const Real* signs, int length, std::size_t columns);
  // rows[c][b] += signs[c] * y[b * length + c], where rows[c] is not null.
  void (*add_interleaved)(Real* const* rows, const Real* signs, const Real* y, int length,
                          std::size_t columns);
  // to[j * to_stride + i] = from[i * from_stride + j], i < rows, j < columns; the second adds.
  void (*transpose)(Real* to, std::size_t to_stride, const Real* from, std::size_t from_stride,
                    std::size_t rows, std::size_t columns);
  void (*add_transposed)(Real* to, std::size_t to_stride, const Real* from, std::size_t from_stride,
                         std::size_t rows, std::size_t columns);
  // out[i] = factors[i] * row[at[i]]
  void (*select)(Real* out, const Real* row, const std::int32_t* at, const Real* factors, int count);
  // to[i] += from[i]
  void (*add)(Real* to, const Real* from, std::size_t count);
};

struct RunKernels {
  RunLoops<double> f64;
  RunLoops<float> f32;
};

OUTCORE_KERNELS(RunKernels, run_kernels);

template <class Real>
[[nodiscard]] const RunLoops<Real>& run_loops(const RunKernels& kernels = run_kernels()) noexcept {
  if constexpr (sizeof(Real) == sizeof(double))
    return kernels.f64;
  else
    return kernels.f32;
}

}  // namespace outcore::chem::ci
