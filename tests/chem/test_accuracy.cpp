#include "chem/hf/accuracy.hpp"
#include "chem/hf/coulomb_exchange.hpp"
#include "chem/hf/slab.hpp"
#include "model.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore::chem;

namespace {

const std::vector<int> shells{0, 1, 2, 0, 3, 1};

/// A density whose shell blocks differ by orders of magnitude.
std::vector<double> graded_density(const Basis& basis) {
  const auto n = std::size_t(basis.functions());
  auto d = model::density(n, 1);
  for (int p = 0; p < basis.shells(); ++p)
    for (int q = 0; q < basis.shells(); ++q)
      for (int a = basis.first(p); a < basis.first(p + 1); ++a)
        for (int b = basis.first(q); b < basis.first(q + 1); ++b)
          d[std::size_t(a) * n + std::size_t(b)] *= std::pow(10.0, -0.3 * (p + q));
  return d;
}

/// So small an error that no value is below its limit, where values are kept at random.
const auto never = std::make_shared<const Accuracy>(1e-30);

Slab stored_slab(const Basis& basis, int i, int j, int k, double step) {
  Slab slab;
  slab.label(basis, i, j, k);
  for (int l = 0; l < basis.shells(); ++l) slab.shells.push_back(std::uint16_t(l));
  slab.set_shells(basis);
  slab.steps.assign(slab.columns.size(), step);
  for (std::size_t r = 0; r < slab.rows(); ++r)
    std::fill_n(slab.row(r), slab.columns.size(), 1.0 / double(r + 1));
  return slab;
}

/// The variance by its definition: the sum over all values of step^2 / 12 times the squared derivative.
double variance_by_definition(const Basis& basis, const Slab& slab, const std::vector<double>& d,
                              double step) {
  const auto n = std::size_t(basis.functions());
  const auto at = [&](int p, int q) { return d[std::size_t(p) * n + std::size_t(q)]; };
  double sum = 0;
  for (int a = basis.first(slab.i); a < basis.first(slab.i + 1); ++a)
    for (int b = basis.first(slab.j); b < basis.first(slab.j + 1); ++b)
      for (int c = basis.first(slab.k); c < basis.first(slab.k + 1); ++c)
        for (int e = 0; e < basis.functions(); ++e) {
          const double gamma = 4 * at(a, b) * at(c, e) - at(a, c) * at(b, e) - at(a, e) * at(b, c);
          sum += step * step / 12 * gamma * gamma;
        }
  return sum;
}

}  // namespace

TEST("one step for all quartets") {
  const Accuracy accuracy(1e-9);
  check::equal(accuracy.step(0, 1, 2, 3), 1e-9);
  check::equal(accuracy.least(), 1e-9);
}

TEST("steps are smaller where the density is larger, between the least and the largest") {
  const auto basis = model::basis(shells);
  const auto d = graded_density(*basis);
  const Accuracy accuracy(*basis, d.data(), 1, 1e-10, 1e-8);
  const int last = basis->shells() - 1;
  check::is_true(accuracy.step(0, 0, 0, 0) < accuracy.step(last, 0, 0, 0));
  check::is_true(accuracy.step(last, 0, 0, 0) < accuracy.step(last, last, last, last));
  for (int i = 0; i <= last; ++i)
    for (int j = 0; j <= last; ++j)
      for (int k = 0; k <= last; ++k)
        for (int l = 0; l <= last; ++l) {
          check::is_true(accuracy.step(i, j, k, l) >= accuracy.least());
          check::is_true(accuracy.step(i, j, k, l) <= accuracy.largest());
        }
  check::equal(Accuracy(*basis, d.data(), 1, 1e-4, 1e-8).step(last, last, last, last), 1e-8);
}

TEST("a density that leaves functions empty does not make steps without bound") {
  const auto basis = model::basis(shells);
  const std::vector<double> empty(std::size_t(basis->functions() * basis->functions()));
  const Accuracy accuracy(*basis, empty.data(), 1, 1e-12, 1.0);
  check::is_true(accuracy.step(1, 0, 2, 1) < 1e-3);
}

TEST("steps that are not between 0 and 1 are refused") {
  for (double step : {0.0, -1e-9, 1.5, std::nan("")}) {
    const auto error = check::throws<outcore::Error>([&] { Accuracy{step}; });
    check::equal(error.errno_value(), EINVAL);
  }
}

TEST("the variance of rounding is that of its definition") {
  const auto basis = model::basis(shells);
  const auto d = graded_density(*basis);
  const Densities densities(*basis, d.data(), std::vector<int>{1});
  std::vector<double> internal(densities.matrix(0), densities.matrix(0) + d.size());
  EnergyError total(*basis, densities, never);
  double expected = 0;
  for (int i = 0; i < basis->shells(); ++i)
    for (int j = 0; j <= i; ++j)
      for (int k = 0; k <= i; ++k) {
        const Slab slab = stored_slab(*basis, i, j, k, 1e-9);
        total.add(slab);
        expected += variance_by_definition(*basis, slab, internal, 1e-9);
      }
  check::is_true(std::abs(total.variance() / expected - 1) < 1e-12);
  check::is_true(total.worst() >= std::sqrt(12 * total.variance()) / 2);
}

TEST("two equal spins err as closed shells do, and threads add up") {
  const auto basis = model::basis(shells);
  const auto d = graded_density(*basis);
  std::vector<double> spins;
  for (int spin = 0; spin < 2; ++spin)
    for (double value : d) spins.push_back(value / 2);
  const Densities closed(*basis, d.data(), std::vector<int>{1});
  const Densities open(*basis, spins.data(), std::vector<int>{1, 1});
  EnergyError one(*basis, closed, never), two(*basis, open, never), other(*basis, open, never);
  const Slab slab = stored_slab(*basis, 2, 1, 0, 1e-9);
  one.add(slab);
  one.add(slab);
  two.add(slab);
  other.add(slab);
  two.add(other);
  check::is_true(std::abs(one.variance() - two.variance()) < 1e-12 * one.variance());
  check::is_true(std::abs(one.worst() - two.worst()) < 1e-12 * one.worst());
}

TEST("exact values do not err") {
  const auto basis = model::basis(shells);
  const auto d = graded_density(*basis);
  const Densities densities(*basis, d.data(), std::vector<int>{1});
  EnergyError error(*basis, densities, never);
  error.add(stored_slab(*basis, 2, 1, 0, 0.0));
  check::equal(error.variance(), 0.0);
  check::equal(error.worst(), 0.0);
}

TEST("shells that stand for others add the square of what they do to the energy") {
  const auto basis = model::basis(shells);
  const auto d = graded_density(*basis);
  const Densities densities(*basis, d.data(), std::vector<int>{1});
  const double* internal = densities.matrix(0);
  const auto n = std::size_t(basis->functions());
  const auto at = [&](int p, int q) { return internal[std::size_t(p) * n + std::size_t(q)]; };
  Slab slab = stored_slab(*basis, 2, 1, 0, 0.0);
  slab.steps.clear();
  slab.weights.assign(slab.shells.size(), 1.0);
  slab.weights[3] = 7.0;
  EnergyError error(*basis, densities, nullptr);
  error.add(slab);
  double product = 0;
  for (int a = 0; a < slab.ni; ++a)
    for (int b = 0; b < slab.nj; ++b)
      for (int c = 0; c < slab.nk; ++c)
        for (int e = basis->first(3); e < basis->first(4); ++e) {
          const int p = basis->first(2) + a, q = basis->first(1) + b, r = basis->first(0) + c;
          product += (4 * at(p, q) * at(r, e) - at(p, r) * at(q, e) - at(p, e) * at(q, r)) *
                     slab.row(std::size_t((a * slab.nj + b) * slab.nk + c))[e];
        }
  check::is_true(std::abs(error.variance() / (product * product) - 1) < 1e-10);
  check::equal(error.largest(), error.variance());
}

TEST_MAIN
