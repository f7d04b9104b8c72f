// Products of matrices by a BLAS that the caller brings along as addresses of functions.
#pragma once

#include <cstdint>

namespace outcore::chem::ci {

/// dgemm and sgemm of Fortran with 32-bit integers, e.g. those of scipy.linalg.cython_blas. They are called
/// by several threads at a time: each call should use one thread.
struct Blas {
  template <class Real>
  using Gemm = void (*)(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,
                        const Real* alpha, const Real* a, const int* lda, const Real* b, const int* ldb,
                        const Real* beta, Real* c, const int* ldc);
  Gemm<double> dgemm;
  Gemm<float> sgemm;

  /// c[m][n] = a[m][k] b[k][n], matrices by rows that are lda, ldb and ldc elements apart.
  template <class Real>
  void multiply(int m, int n, int k, const Real* a, int lda, const Real* b, int ldb, Real* c, int ldc) const {
    // By rows of ours is by columns of Fortran's, of the transposed matrices.
    const Real one = 1, zero = 0;
    gemm<Real>()("N", "N", &n, &m, &k, &one, b, &ldb, a, &lda, &zero, c, &ldc);
  }

  /// c[m][n] += a[m][k] b[k][n].
  template <class Real>
  void add(int m, int n, int k, const Real* a, int lda, const Real* b, int ldb, Real* c, int ldc) const {
    const Real one = 1;
    gemm<Real>()("N", "N", &n, &m, &k, &one, b, &ldb, a, &lda, &one, c, &ldc);
  }

  /// c[m][n] += a[m][k] b[n][k]^T.
  template <class Real>
  void add_products(int m, int n, int k, const Real* a, int lda, const Real* b, int ldb, Real* c,
                    int ldc) const {
    const Real one = 1;
    gemm<Real>()("T", "N", &n, &m, &k, &one, b, &ldb, a, &lda, &one, c, &ldc);
  }

 private:
  template <class Real>
  [[nodiscard]] auto gemm() const {
    if constexpr (sizeof(Real) == 8)
      return dgemm;
    else
      return sgemm;
  }
};

}  // namespace outcore::chem::ci
