#include "chem/hf/coulomb_exchange.hpp"

#include <algorithm>
#include <cmath>

#include "chem/hf/kernels.hpp"

namespace outcore::chem {
Densities::Densities(const Basis& basis, const double* matrices, std::span<const int> symmetry)
    : n_(std::size_t(basis.functions())),
      symmetry_(symmetry.begin(), symmetry.end()),
      matrices_(symmetry.size() * n_ * n_) {
  const auto original = basis.original();
  for (std::size_t d = 0; d < count(); ++d)
    for (std::size_t p = 0; p < n_; ++p)
      for (std::size_t q = 0; q < n_; ++q)
        matrices_[(d * n_ + p) * n_ + q] =
            matrices[(d * n_ + std::size_t(original[p])) * n_ + std::size_t(original[q])];
}

DensityBounds Densities::bounds(const Basis& basis) const {
  DensityBounds bounds;
  bounds.shells = basis.shells();
  bounds.largest.assign(std::size_t(basis.shells()) * std::size_t(basis.shells()), 0.0);
  std::size_t at = 0;
  for (int p = 0; p < basis.shells(); ++p)
    for (int q = 0; q < basis.shells(); ++q, ++at) {
      double& largest = bounds.largest[at];
      for (std::size_t d = 0; d < count(); ++d)
        for (int a = basis.first(p); a < basis.first(p + 1); ++a)
          for (int b = basis.first(q); b < basis.first(q + 1); ++b)
            largest = std::max(largest, std::abs(matrix(d)[std::size_t(a) * n_ + std::size_t(b)]));
      bounds.overall = std::max(bounds.overall, largest);
    }
  return bounds;
}

CoulombExchange::CoulombExchange(const Basis& basis, const Densities& densities)
    : basis_(basis),
      densities_(densities),
      n_(std::size_t(basis.functions())),
      coulomb_(densities.count() * n_ * n_),
      exchange_(densities.count() * n_ * n_) {}

std::size_t CoulombExchange::bytes(const Basis& basis, std::size_t densities) {
  const auto n = std::size_t(basis.functions());
  return (2 * densities * n * n + 6 * std::size_t(basis.largest_shell()) * (n + Slab::lane)) * sizeof(double);
}

void CoulombExchange::add(const Slab& slab) {
  for (std::size_t d = 0; d < densities_.count(); ++d) contract(slab, d);
}

void CoulombExchange::contract(const Slab& slab, std::size_t d) {
  const double* density = densities_.matrix(d);
  double* coulomb = coulomb_.data() + d * n_ * n_;
  double* exchange = exchange_.data() + d * n_ * n_;
  const std::size_t length = slab.row_length, columns = slab.columns.size();
  const auto ni = std::size_t(slab.ni), nj = std::size_t(slab.nj), nk = std::size_t(slab.nk);
  const auto i0 = std::size_t(basis_.first(slab.i)), j0 = std::size_t(basis_.first(slab.j)),
             k0 = std::size_t(basis_.first(slab.k));

  // Rows of D and of the results, restricted to the slab's columns.
  const std::size_t all = ni + nj + nk;
  if (space_.size() < 2 * all * length) space_.resize(2 * all * length);
  double* d_i = space_.data();
  double* d_j = d_i + ni * length;
  double* d_k = d_j + nj * length;
  double* k_i = d_k + nk * length;
  double* k_j = k_i + ni * length;
  double* j_k = k_j + nj * length;
  const auto gather = [&](double* rows, std::size_t first, std::size_t count) {
    for (std::size_t r = 0; r < count; ++r) {
      const double* from = density + (first + r) * n_;
      double* to = rows + r * length;
      for (std::size_t c = 0; c < columns; ++c) to[c] = from[slab.columns[c]];
      for (std::size_t c = columns; c < length; ++c) to[c] = 0.0;
    }
  };
  gather(d_i, i0, ni);
  gather(d_j, j0, nj);
  gather(d_k, k0, nk);
  std::fill(k_i, k_i + all * length, 0.0);

  for (std::size_t number = 0; number < std::size_t(slab.pairs); ++number) {
    const std::size_t a = (std::size_t(slab.first_pair) + number) / nj,
                      b = (std::size_t(slab.first_pair) + number) % nj;
    PairOfFunctions pair{.length = length,
                         .values = slab.row(number * nk),
                         .d_a = d_i + a * length,
                         .d_b = d_j + b * length,
                         .d_k = d_k,
                         .k_a = k_i + a * length,
                         .k_b = k_j + b * length,
                         .j_k = j_k,
                         .d_ab = density[(i0 + a) * n_ + j0 + b],
                         .d_ac = density + (i0 + a) * n_ + k0,
                         .d_bc = density + (j0 + b) * n_ + k0,
                         .j_ab = 0.0,
                         .k_ac = exchange + (i0 + a) * n_ + k0,
                         .k_bc = exchange + (j0 + b) * n_ + k0};
    kernels().contract(pair, slab.nk);
    coulomb[(i0 + a) * n_ + j0 + b] += pair.j_ab;
  }

  const auto scatter = [&](const double* rows, double* matrix, std::size_t first, std::size_t count) {
    for (std::size_t r = 0; r < count; ++r) {
      double* to = matrix + (first + r) * n_;
      for (std::size_t c = 0; c < columns; ++c) to[slab.columns[c]] += rows[r * length + c];
    }
  };
  scatter(k_i, exchange, i0, ni);
  scatter(k_j, exchange, j0, nj);
  scatter(j_k, coulomb, k0, nk);
}

void CoulombExchange::add(const CoulombExchange& other) {
  for (std::size_t at = 0; at < coulomb_.size(); ++at) coulomb_[at] += other.coulomb_[at];
  for (std::size_t at = 0; at < exchange_.size(); ++at) exchange_[at] += other.exchange_[at];
}

void CoulombExchange::finish(double scale, double* coulomb, double* exchange) const {
  const auto original = basis_.original();
  for (std::size_t d = 0; d < densities_.count(); ++d) {
    const double sign = densities_.symmetry(d);
    const double* j = coulomb_.data() + d * n_ * n_;
    const double* k = exchange_.data() + d * n_ * n_;
    for (std::size_t p = 0; p < n_; ++p) {
      const std::size_t row = (d * n_ + std::size_t(original[p])) * n_;
      for (std::size_t q = 0; q < n_; ++q) {
        const std::size_t pq = p * n_ + q, qp = q * n_ + p, to = row + std::size_t(original[q]);
        coulomb[to] = sign > 0 ? 2 * scale * (j[pq] + j[qp]) : 0.0;
        exchange[to] = scale * (k[pq] + sign * k[qp]);
      }
    }
  }
}

}  // namespace outcore::chem
