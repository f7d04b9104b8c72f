// Bodies of the kernels, for one instruction set: see base/instruction_sets.hpp, also for what may not be
// used.

#include "tensor/tile_kernels.hpp"

namespace outcore::tensor {
namespace {

template <class Real>
void scale(Real* __restrict out, const Real* __restrict in, Real alpha, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) out[i] = alpha * in[i];
}

template <class Real>
void add(Real* __restrict out, const Real* __restrict in, Real alpha, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) out[i] += alpha * in[i];
}

template <class Real>
void scale_complex(Real* __restrict out, const Real* __restrict in, const Real* alpha, std::size_t length) {
  const Real re = alpha[0], im = alpha[1];
  for (std::size_t i = 0; i < length; i += 2) {
    const Real x = in[i], y = in[i + 1];
    out[i] = re * x - im * y;
    out[i + 1] = re * y + im * x;
  }
}

template <class Real>
void add_complex(Real* __restrict out, const Real* __restrict in, const Real* alpha, std::size_t length) {
  const Real re = alpha[0], im = alpha[1];
  for (std::size_t i = 0; i < length; i += 2) {
    const Real x = in[i], y = in[i + 1];
    out[i] += re * x - im * y;
    out[i + 1] += re * y + im * x;
  }
}

template <class Real>
void sum_difference(Real* __restrict plus, Real* __restrict minus, const Real* __restrict a,
                    const Real* __restrict b, Real factor, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) {
    const Real x = a[i], y = b[i];
    plus[i] = factor * (x + y);
    minus[i] = factor * (x - y);
  }
}

}  // namespace

const TileKernels OUTCORE_VARIANT(tile_kernels) = {
    {scale<float>, add<float>, scale_complex<float>, add_complex<float>, sum_difference<float>},
    {scale<double>, add<double>, scale_complex<double>, add_complex<double>, sum_difference<double>}};

}  // namespace outcore::tensor
