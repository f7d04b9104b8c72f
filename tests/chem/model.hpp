// A molecule that needs no integral library: (pq|rs) = sum_x A_x(p,q) A_x(r,s) with symmetric A_x. These have
// the permutational symmetry of real integrals, and obey the Schwarz inequality.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "chem/common/basis.hpp"
#include "chem/hf/screening.hpp"

namespace model {

inline constexpr int terms = 3;

/// First function of each shell of the basis in use; the integral function has no other access to it.
inline std::vector<int> first;

inline double factor_by_formula(int x, int p, int q) {
  if (p < q) std::swap(p, q);
  return std::sin(1.0 + 0.7 * p + 0.3 * q + 1.1 * x) * std::exp(-0.15 * (p - q)) / (1 + x);
}

/// A_x(p,q). Those of the first functions are computed once, as a reference needs millions of them.
inline double factor(int x, int p, int q) {
  constexpr int known = 256;
  static const std::vector<double> table = [] {
    std::vector<double> values;
    values.reserve(std::size_t(terms) * known * known);
    for (int i = 0; i < terms; ++i)
      for (int j = 0; j < known; ++j)
        for (int k = 0; k < known; ++k) values.push_back(factor_by_formula(i, j, k));
    return values;
  }();
  if (std::max(p, q) >= known) return factor_by_formula(x, p, q);
  return table[std::size_t((x * known + p) * known + q)];
}

inline double integral(int p, int q, int r, int s) {
  double sum = 0;
  for (int x = 0; x < terms; ++x) sum += factor(x, p, q) * factor(x, r, s);
  return sum;
}

inline int int2e(double* out, int*, int* shells, int*, int, int*, int, double*, void*, double*) {
  if (!out) return 1;
  const auto at = [&](int position, int offset) { return first[std::size_t(shells[position])] + offset; };
  const auto size = [&](int position) { return first[std::size_t(shells[position]) + 1] - at(position, 0); };
  for (int s = 0; s < size(3); ++s)
    for (int r = 0; r < size(2); ++r)
      for (int q = 0; q < size(1); ++q)
        for (int p = 0; p < size(0); ++p) *out++ = integral(at(0, p), at(1, q), at(2, r), at(3, s));
  return 1;
}

inline std::shared_ptr<const outcore::chem::Basis> basis(const std::vector<int>& angular_momenta) {
  std::vector<int> bas;
  first = {0};
  for (int l : angular_momenta) {
    bas.insert(bas.end(), {0, l, 1, 1, 0, 0, 0, 0});
    first.push_back(first.back() + (l + 1) * (l + 2) / 2);
  }
  const std::vector<int> atm(6);
  const std::vector<double> env(20);
  const outcore::chem::Libcint libcint{int2e, [](void**, int*, int, int*, int, double*) {}, [](void**) {}};
  return std::make_shared<const outcore::chem::Basis>(atm, bas, env, true, libcint);
}

/// A density matrix: symmetric (+1) or antisymmetric (-1).
inline std::vector<double> density(std::size_t n, int symmetry) {
  std::vector<double> d(n * n);
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t q = 0; q <= p; ++q) {
      const double value = p == q && symmetry < 0 ? 0.0 : std::cos(double(3 * p + 7 * q + 1));
      d[p * n + q] = value;
      d[q * n + p] = symmetry * value;
    }
  return d;
}

struct Matrices {
  std::vector<double> coulomb, exchange;
};

/// J and K by their definition.
inline Matrices reference(const std::vector<double>& d, std::size_t n) {
  Matrices m{std::vector<double>(n * n), std::vector<double>(n * n)};
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t q = 0; q < n; ++q)
      for (std::size_t r = 0; r < n; ++r)
        for (std::size_t s = 0; s < n; ++s) {
          m.coulomb[p * n + q] += integral(int(p), int(q), int(r), int(s)) * d[r * n + s];
          m.exchange[p * n + q] += integral(int(p), int(r), int(q), int(s)) * d[r * n + s];
        }
  return m;
}

inline double distance(std::span<const double> a, std::span<const double> b) {
  double largest = a.size() == b.size() ? 0.0 : HUGE_VAL;
  for (std::size_t at = 0; at < std::min(a.size(), b.size()); ++at)
    largest = std::max(largest, std::abs(a[at] - b[at]));
  return largest;
}

}  // namespace model
