// Products of global matrices, for C: each process computes the part that it holds.
#pragma once

#include "outcore/global_array.hpp"

namespace outcore::capi {

struct MatrixFactor {
  const GlobalArray& array;
  int trans = 'N';  ///< 'N', 'T' or 'C'
};

/// c = alpha op(a) op(b) + beta c; null alpha is one, null beta zero. Collective. Error(EINVAL) if the
/// matrices do not fit.
void multiply(const MatrixFactor& a, const MatrixFactor& b, const void* alpha, const void* beta,
              GlobalArray& c);

}  // namespace outcore::capi
