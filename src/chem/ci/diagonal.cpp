#include "chem/ci/diagonal.hpp"

#include <algorithm>
#include <bit>

namespace outcore::chem::ci {
namespace {

std::vector<double> energies(const Strings& strings, const Integrals& v, bool beta) {
  const auto spins = beta ? Spins::bb : Spins::aa;
  const auto n = std::size_t(v.orbitals);
  std::vector<double> pairs(n * n), result;
  for (int p = 0; p < v.orbitals; ++p)
    for (int q = 0; q < v.orbitals; ++q)
      pairs[std::size_t(p) * n + std::size_t(q)] = v.bare(spins, p, p, q, q) - v.bare(spins, p, q, q, p);
  result.reserve(std::size_t(strings.count()));
  for (std::uint64_t string : strings.masks()) {
    double sum = 0;
    for (std::uint64_t a = string; a; a &= a - 1) {
      const auto p = std::size_t(std::countr_zero(a));
      sum += v.one(beta, int(p), int(p));
      for (std::uint64_t b = a & (a - 1); b; b &= b - 1)
        sum += pairs[p * n + std::size_t(std::countr_zero(b))];
    }
    result.push_back(sum);
  }
  return result;
}

}  // namespace

Diagonal::Diagonal(const Space& space, const Integrals& v)
    : orbitals_(v.orbitals),
      constant_(v.spin_shift * std::min(v.alpha_electrons, v.beta_electrons)),
      alpha_(energies(space.alpha, v, false)),
      beta_(energies(space.beta, v, true)) {
  for (int p = 0; p < orbitals_; ++p)
    for (int q = 0; q < orbitals_; ++q)
      coulomb_.push_back(v.bare(Spins::ab, p, p, q, q) - (p == q ? v.spin_shift : 0));
}

template <class Element>
void Diagonal::fill(const Space& space, std::int64_t alpha, std::int64_t beta,
                    const View<Element>& tile) const {
  const auto n = std::size_t(orbitals_);
  std::vector<double> field(n);
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    std::fill(field.begin(), field.end(), 0.0);
    for (std::uint64_t a = space.alpha.mask(alpha + i); a; a &= a - 1) {
      const double* row = &coulomb_[std::size_t(std::countr_zero(a)) * n];
      for (std::size_t q = 0; q < n; ++q) field[q] += row[q];
    }
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      double sum = constant_ + alpha_[std::size_t(alpha + i)] + beta_[std::size_t(beta + j)];
      for (std::uint64_t b = space.beta.mask(beta + j); b; b &= b - 1)
        sum += field[std::size_t(std::countr_zero(b))];
      tile.data[i * tile.row_stride + j * tile.column_stride] = Element(sum);
    }
  }
}

template void Diagonal::fill(const Space&, std::int64_t, std::int64_t, const View<double>&) const;
template void Diagonal::fill(const Space&, std::int64_t, std::int64_t, const View<float>&) const;

}  // namespace outcore::chem::ci
