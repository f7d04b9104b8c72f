// The inner loops of tiles.hpp, compiled for several instruction sets.
#pragma once

#include <cstddef>

#include "base/instruction_sets.hpp"

namespace outcore::tensor {

/// Kernels for rows of contiguous elements that do not overlap. Complex elements are two numbers; `length`
/// counts both.
template <class Real>
struct RowKernels {
  void (*scale)(Real* out, const Real* in, Real alpha, std::size_t length);  // out = alpha in
  void (*add)(Real* out, const Real* in, Real alpha, std::size_t length);    // out += alpha in
  // The same with alpha = alpha[0] + i alpha[1]
  void (*scale_complex)(Real* out, const Real* in, const Real* alpha, std::size_t length);
  void (*add_complex)(Real* out, const Real* in, const Real* alpha, std::size_t length);
  // plus = factor (a + b), minus = factor (a - b)
  void (*sum_difference)(Real* plus, Real* minus, const Real* a, const Real* b, Real factor,
                         std::size_t length);
};

struct TileKernels {
  RowKernels<float> of_float;
  RowKernels<double> of_double;
};

OUTCORE_KERNELS(TileKernels, tile_kernels);

}  // namespace outcore::tensor
