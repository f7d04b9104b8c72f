#include "chem/hf/coulomb_exchange.hpp"
#include "model.hpp"
#include "support/check.hpp"

using namespace outcore::chem;

namespace {

model::Matrices contract(const Basis& basis, const std::vector<double>& densities,
                         const std::vector<int>& symmetry, double threshold = 1e-14) {
  const Screening screening(basis, threshold, 1);
  SlabMaker maker(basis, screening);
  const Densities internal(basis, densities.data(), symmetry);
  CoulombExchange sums(basis, internal);
  for (const auto& task : screening.tasks()) maker.run(task, {}, [&](const Slab& slab) { sums.add(slab); });
  model::Matrices m{std::vector<double>(densities.size()), std::vector<double>(densities.size())};
  sums.finish(1.0, m.coulomb.data(), m.exchange.data());
  return m;
}

void compare(const std::vector<int>& shells, int symmetry) {
  const auto basis = model::basis(shells);
  const auto n = std::size_t(basis->functions());
  const auto d = model::density(n, symmetry);
  const auto expected = model::reference(d, n);
  const auto found = contract(*basis, d, {symmetry});
  check::is_true(model::distance(found.coulomb, expected.coulomb) < 1e-10, "J differs");
  check::is_true(model::distance(found.exchange, expected.exchange) < 1e-10, "K differs");
}

}  // namespace

TEST("J and K of one shell") {
  compare({2}, 1);
}
TEST("J and K of s shells only") {
  compare({0, 0, 0, 0, 0}, 1);
}
TEST("J and K of shells from s to g") {
  compare({0, 1, 4, 0, 2, 3, 1}, 1);
}
TEST("J and K of an antisymmetric density") {
  compare({0, 1, 2, 1, 0}, -1);
}

TEST("several densities of both kinds at once") {
  const auto basis = model::basis({1, 0, 2, 1});
  const auto n = std::size_t(basis->functions());
  const auto one = model::density(n, 1), two = model::density(n, -1);
  std::vector<double> both = one;
  both.insert(both.end(), two.begin(), two.end());
  const auto found = contract(*basis, both, {1, -1});
  const auto first = model::reference(one, n), second = model::reference(two, n);
  const std::span<const double> j(found.coulomb), k(found.exchange);
  check::is_true(model::distance(j.first(n * n), first.coulomb) < 1e-10);
  check::is_true(model::distance(k.first(n * n), first.exchange) < 1e-10);
  check::is_true(model::distance(j.last(n * n), second.coulomb) < 1e-10);
  check::is_true(model::distance(k.last(n * n), second.exchange) < 1e-10);
}

TEST_MAIN
