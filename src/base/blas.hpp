// Products of matrices by a BLAS whose functions the caller passes. All calls of BLAS are here.
#pragma once

#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace outcore {

/// xgemm of Fortran, e.g. from scipy.linalg.cython_blas or from the program, for products of arrays and
/// kernels of methods. Several threads call them at a time, so each call should use one thread.
struct Blas {
  /// The last arguments are the lengths of the texts, which Fortran compilers pass by value; C functions
  /// without them ignore them. Eight-byte integers also work for functions that take four bytes, because the
  /// numbers are small and machines are little-endian.
  template <class Element>
  using Gemm = void (*)(const char* trans_a, const char* trans_b, const std::int64_t* m,
                        const std::int64_t* n, const std::int64_t* k, const Element* alpha, const Element* a,
                        const std::int64_t* lda, const Element* b, const std::int64_t* ldb,
                        const Element* beta, Element* c, const std::int64_t* ldc, std::size_t length_a,
                        std::size_t length_b);
  static_assert(std::endian::native == std::endian::little);
  Gemm<double> dgemm = nullptr;
  Gemm<float> sgemm = nullptr;
  Gemm<std::complex<double>> zgemm = nullptr;
  Gemm<std::complex<float>> cgemm = nullptr;

  /// A matrix by rows that are `leading` elements apart; turned: its transpose.
  template <class Element>
  struct Matrix {
    const Element* first;
    std::int64_t leading;
    bool turned = false;
  };

  /// c[m][n] = alpha a[m][k] b[k][n] + beta c[m][n], matrices by rows; no number is 2^31 or more.
  template <class Element>
  void product(std::int64_t m, std::int64_t n, std::int64_t k, Element alpha, const Matrix<Element>& a,
               const Matrix<Element>& b, Element beta, Element* c, std::int64_t ldc) const {
    // Our row-major matrices are, for Fortran, the transposed matrices in column-major order.
    gemm<Element>()(b.turned ? "T" : "N", a.turned ? "T" : "N", &n, &m, &k, &alpha, b.first, &b.leading,
                    a.first, &a.leading, &beta, c, &ldc, 1, 1);
  }

  /// c[m][n] = a[m][k] b[k][n], matrices by rows that are lda, ldb and ldc elements apart.
  template <class Real>
  void multiply(int m, int n, int k, const Real* a, int lda, const Real* b, int ldb, Real* c, int ldc) const {
    product<Real>(m, n, k, 1, {a, lda}, {b, ldb}, 0, c, ldc);
  }

  /// c[m][n] += a[m][k] b[k][n].
  template <class Real>
  void add(int m, int n, int k, const Real* a, int lda, const Real* b, int ldb, Real* c, int ldc) const {
    product<Real>(m, n, k, 1, {a, lda}, {b, ldb}, 1, c, ldc);
  }

  /// c[m][n] += a[m][k] b[n][k]^T.
  template <class Real>
  void add_products(int m, int n, int k, const Real* a, int lda, const Real* b, int ldb, Real* c,
                    int ldc) const {
    product<Real>(m, n, k, 1, {a, lda}, {b, ldb, true}, 1, c, ldc);
  }

  template <class Element>
  [[nodiscard]] auto gemm() const {
    if constexpr (std::is_same_v<Element, double>)
      return dgemm;
    else if constexpr (std::is_same_v<Element, float>)
      return sgemm;
    else if constexpr (std::is_same_v<Element, std::complex<double>>)
      return zgemm;
    else
      return cgemm;
  }
};

}  // namespace outcore
