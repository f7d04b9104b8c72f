// Triples of closed shells against a plain loop over i, j, k.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "chem/cc/triples.hpp"
#include "support/check.hpp"

using namespace outcore::chem::cc;

namespace {

/// dgemm of Fortran.
void gemm(const char* trans_a, const char*, const int* m, const int* n, const int* k, const double* alpha,
          const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
          const int* ldc) {
  for (int j = 0; j < *n; ++j)
    for (int i = 0; i < *m; ++i) {
      double sum = 0;
      for (int l = 0; l < *k; ++l)
        sum += (*trans_a == 'T' ? a[i * *lda + l] : a[l * *lda + i]) * b[j * *ldb + l];
      double& to = c[j * *ldc + i];
      to = *alpha * sum + (*beta == 0 ? 0.0 : *beta * to);
    }
}

/// Occupied orbitals 0 to o - 1 and virtual ones from o on, whose integrals and amplitudes follow a formula.
struct Model {
  std::size_t o, v;

  [[nodiscard]] double integral(std::size_t p, std::size_t q, std::size_t r, std::size_t s) const {
    return std::cos(0.7 * double(p + q) + 0.3 * double(p * q)) *
               std::cos(0.7 * double(r + s) + 0.3 * double(r * s)) +
           0.1 / (1.0 + double(p + q + r + s));
  }
  [[nodiscard]] double t2(std::size_t i, std::size_t j, std::size_t a, std::size_t b) const {
    return std::sin(1.1 * double(i) + 0.7 * double(a)) * std::sin(1.1 * double(j) + 0.7 * double(b)) +
           0.1 * std::cos(double(i * a + j * b));
  }
  [[nodiscard]] double t1(std::size_t i, std::size_t a) const {
    return 0.1 * std::sin(1.3 * double(i) + 2.1 * double(a));
  }
  [[nodiscard]] double fock(std::size_t i, std::size_t a) const {
    return 0.1 * std::cos(0.9 * double(i) + 1.7 * double(a));
  }
  [[nodiscard]] double energy(std::size_t p) const { return (p < o ? -2.0 : 1.0) + 0.11 * double(p); }

  /// One of the six terms of connected amplitudes.
  [[nodiscard]] double term(std::size_t i, std::size_t x, std::size_t j, std::size_t y, std::size_t k,
                            std::size_t z) const {
    double sum = 0;
    for (std::size_t d = 0; d < v; ++d) sum += integral(i, o + x, o + y, o + d) * t2(j, k, d, z);
    for (std::size_t l = 0; l < o; ++l) sum -= integral(i, o + x, j, l) * t2(k, l, z, y);
    return sum;
  }
  [[nodiscard]] double w(std::size_t i, std::size_t j, std::size_t k, std::size_t a, std::size_t b,
                         std::size_t c) const {
    return term(i, a, j, b, k, c) + term(i, a, k, c, j, b) + term(j, b, i, a, k, c) + term(j, b, k, c, i, a) +
           term(k, c, i, a, j, b) + term(k, c, j, b, i, a);
  }
  [[nodiscard]] double disconnected(std::size_t i, std::size_t j, std::size_t k, std::size_t a, std::size_t b,
                                    std::size_t c) const {
    return integral(i, o + a, j, o + b) * t1(k, c) + t2(i, j, a, b) * fock(k, c) +
           integral(i, o + a, k, o + c) * t1(j, b) + t2(i, k, a, c) * fock(j, b) +
           integral(j, o + b, k, o + c) * t1(i, a) + t2(j, k, b, c) * fock(i, a);
  }
  [[nodiscard]] double plain(std::size_t a, std::size_t b, std::size_t c) const {
    double sum = 0;
    for (std::size_t i = 0; i < o; ++i)
      for (std::size_t j = 0; j < o; ++j)
        for (std::size_t k = 0; k < o; ++k) {
          const double direct = w(i, j, k, a, b, c);
          const double all = 4 * direct + w(j, k, i, a, b, c) + w(k, i, j, a, b, c) -
                             2 * (w(i, k, j, a, b, c) + w(j, i, k, a, b, c) + w(k, j, i, a, b, c));
          sum += (direct + disconnected(i, j, k, a, b, c)) * all /
                 (energy(i) + energy(j) + energy(k) - energy(o + a) - energy(o + b) - energy(o + c));
        }
    return 2 * sum;
  }
};

/// What a virtual orbital x brings.
struct OfOne {
  std::vector<double> amplitudes, integrals, t1, fock;
  double energy;

  OfOne(const Model& m, std::size_t x) : energy(m.energy(m.o + x)) {
    for (std::size_t d = 0; d < m.v; ++d)
      for (std::size_t j = 0; j < m.o; ++j)
        for (std::size_t k = 0; k < m.o; ++k) amplitudes.push_back(m.t2(j, k, d, x));
    for (std::size_t i = 0; i < m.o; ++i) {
      for (std::size_t j = 0; j < m.o; ++j)
        for (std::size_t l = 0; l < m.o; ++l) integrals.push_back(-m.integral(i, m.o + x, j, l));
      t1.push_back(m.t1(i, x));
      fock.push_back(m.fock(i, x));
    }
  }
  [[nodiscard]] Single all() const {
    return {amplitudes.data(), integrals.data(), t1.data(), fock.data(), energy};
  }
};

/// What virtual orbitals x and y bring.
struct OfTwo {
  std::vector<double> integrals, turned, amplitudes, exchange;

  OfTwo(const Model& m, std::size_t x, std::size_t y) {
    for (std::size_t i = 0; i < m.o; ++i) {
      for (std::size_t d = 0; d < m.v; ++d) {
        integrals.push_back(m.integral(i, m.o + x, m.o + y, m.o + d));
        turned.push_back(m.integral(i, m.o + y, m.o + x, m.o + d));
      }
      for (std::size_t j = 0; j < m.o; ++j) {
        amplitudes.push_back(m.t2(i, j, x, y));
        exchange.push_back(m.integral(i, m.o + x, j, m.o + y));
      }
    }
  }
  [[nodiscard]] Double all() const {
    return {integrals.data(), turned.data(), amplitudes.data(), exchange.data()};
  }
};

}  // namespace

TEST("energies are those of a plain loop") {
  for (const std::size_t o : {1u, 2u, 4u}) {
    const Model m{o, 4};
    std::vector<double> energies(o);
    for (std::size_t i = 0; i < o; ++i) energies[i] = m.energy(i);
    TriplesWork work;
    for (const auto [a, b, c] : {std::array<std::size_t, 3>{3, 2, 0}, {3, 1, 1}, {2, 2, 1}}) {
      const double found = triples_energy(gemm, int(o), int(m.v), energies.data(), OfOne(m, a).all(),
                                          OfOne(m, b).all(), OfOne(m, c).all(), OfTwo(m, a, b).all(),
                                          OfTwo(m, a, c).all(), OfTwo(m, b, c).all(), work);
      const double expected = m.plain(a, b, c);
      check::is_true(std::abs(found - expected) < 1e-11 * std::max(1.0, std::abs(expected)));
    }
  }
}

TEST_MAIN
