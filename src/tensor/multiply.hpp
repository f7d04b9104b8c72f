// Products of panels, by BLAS.
#pragma once

#include <cstddef>
#include <functional>

#include "base/blas.hpp"
#include "base/sibling.hpp"
#include "outcore/element_type.hpp"
#include "tensor/panels.hpp"

namespace outcore::tensor {

/// out[b] = alpha left[b] right[b], or out[b] += that, with the alpha that multiply_by was given. Any thread.
using Multiply =
    std::function<void(const Matrices& left, const Matrices& right, const Matrices& out, bool add)>;

/// A function for elements of float32, float64, complex64 or complex128 (asserted). Elements of matrices must
/// lie side by side along rows or columns (else Error(EINVAL)). alpha: one element, copied. Small matrices
/// are multiplied by loops; if `blas` lacks the function, all are.
[[nodiscard]] OUTCORE_SIBLING Multiply multiply_by(const Blas& blas, ElementType type, const void* alpha);

}  // namespace outcore::tensor
