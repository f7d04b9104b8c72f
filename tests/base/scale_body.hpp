#include "base/scale_kernels.hpp"

namespace scale {
namespace {

void scale(double* x, std::size_t length, double factor) {
  for (std::size_t at = 0; at < length; ++at) x[at] *= factor;
}

}  // namespace

const Kernels OUTCORE_VARIANT(kernels) = {OUTCORE_LANE, scale};

}  // namespace scale
