#include "tensor/program_blas.hpp"

#include <dlfcn.h>

#include <complex>

namespace outcore::tensor {

const Blas& program_blas() {
  const auto named = []<class Function>(const char* name, Function) {
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  };
  static const Blas found{named("dgemm_", Blas::Gemm<double>{}), named("sgemm_", Blas::Gemm<float>{}),
                          named("zgemm_", Blas::Gemm<std::complex<double>>{}),
                          named("cgemm_", Blas::Gemm<std::complex<float>>{})};
  return found;
}

}  // namespace outcore::tensor
