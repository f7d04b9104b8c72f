// Products of panels, by BLAS.
#pragma once

#include <cstddef>
#include <functional>

#include "base/blas.hpp"
#include "base/sibling.hpp"
#include "outcore/element_type.hpp"
#include "tensor/panels.hpp"

namespace outcore::tensor {

/// out[b] = left[b] right[b], or that is added, times what the maker of the function has been given. Any
/// thread.
using Multiply =
    std::function<void(const Matrices& left, const Matrices& right, const Matrices& out, bool add)>;

/// Of elements of float32, float64, complex64 or complex128 (asserted), whose matrices have elements side by
/// side along rows or columns (else Error(EINVAL)); alpha: one element, copied. Small matrices, and all where
/// `blas` lacks the function, are multiplied by loops.
[[nodiscard]] OUTCORE_SIBLING Multiply multiply_by(const Blas& blas, ElementType type, const void* alpha);

}  // namespace outcore::tensor
