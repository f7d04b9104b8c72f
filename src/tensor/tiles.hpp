// Operations on tiles of tensors besides products: permute, scale, add; pack pairs of indices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/sibling.hpp"
#include "outcore/box.hpp"
#include "outcore/element_type.hpp"

namespace outcore::tensor {

/// to = alpha * from, element by element, or to += alpha * from if `accumulate`. Any strides, so axes can be
/// permuted by their strides. float32, float64, complex64, complex128 (asserted), aligned; the memory does
/// not overlap; `alpha` points to one element. A real alpha multiplies the parts of complex elements one by
/// one. Any thread.
OUTCORE_SIBLING void permute(std::byte* to, const Extents& to_stride_bytes, const std::byte* from,
                             const Extents& from_stride_bytes, const Extents& count, ElementType type,
                             const void* alpha, bool accumulate);

/// Packs each of `rows` square matrices x of side n, contiguous: for c >= d
///
///   plus[c (c + 1) / 2 + d] = x[c][d] + x[d][c], on the diagonal times `diagonal`
///   minus[c (c - 1) / 2 + d] = x[c][d] - x[d][c], without the diagonal
///
/// Types as above. Any thread. Throws std::bad_alloc.
OUTCORE_SIBLING void pack_pairs(const std::byte* x, std::byte* plus, std::byte* minus, std::int64_t rows,
                                std::int64_t n, ElementType type, double diagonal);

/// The reverse: x[c][d] = (plus + minus) / 2, x[d][c] = (plus - minus) / 2, x[c][c] = diagonal * plus.
OUTCORE_SIBLING void unpack_pairs(std::byte* x, const std::byte* plus, const std::byte* minus,
                                  std::int64_t rows, std::int64_t n, ElementType type, double diagonal);

}  // namespace outcore::tensor
