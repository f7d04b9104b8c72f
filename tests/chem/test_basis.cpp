#include <algorithm>
#include <numeric>

#include "model.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore::chem;

TEST("shells of one atom with the same exponents become one") {
  const auto basis = model::basis({0, 1, 0, 1});  // the model's shells all have the same exponent
  check::equal(basis->shells(), 2);
  check::equal(basis->size(0), 5);  // s, p and s; another p would make it too large
  check::equal(basis->components(0).size(), std::size_t(3));
  check::equal(basis->component_count(), 4);
}

TEST("large shells stay alone") {
  const auto basis = model::basis({3, 3});
  check::equal(basis->shells(), 2);
}

TEST("every function has one original number") {
  const auto basis = model::basis({0, 1, 0, 2, 1, 0, 3});
  std::vector<int> seen(basis->original().begin(), basis->original().end());
  std::ranges::sort(seen);
  std::vector<int> expected(std::size_t(basis->functions()));
  std::iota(expected.begin(), expected.end(), 0);
  check::is_true(seen == expected);
}

TEST("functions of a component keep their order") {
  const auto basis = model::basis({0, 1, 0});
  const auto original = basis->original();
  for (int shell = 0; shell < basis->shells(); ++shell)
    for (const auto& part : basis->components(shell))
      for (int f = 0; f < part.size; ++f)
        check::equal(original[std::size_t(basis->first(shell) + part.offset + f)],
                     model::first[std::size_t(part.number)] + f);
}

TEST("tables of a wrong shape, and missing entry points, are refused") {
  const Libcint good{model::int2e, [](void**, int*, int, int*, int, double*) {}, [](void**) {}};
  const std::vector<int> atm(6), bas{0, 0, 1, 1, 0, 0, 0, 0};
  const std::vector<double> env(20);
  check::throws<outcore::Error>([&] { Basis(std::span(atm).first(5), bas, env, true, good); });
  check::throws<outcore::Error>([&] { Basis(atm, std::span(bas).first(7), env, true, good); });
  check::throws<outcore::Error>([&] { Basis(atm, {}, env, true, good); });
  check::throws<outcore::Error>([&] { Basis(atm, bas, env, true, Libcint{}); });
}

TEST("more functions than labels can name are refused") {
  const Libcint good{model::int2e, [](void**, int*, int, int*, int, double*) {}, [](void**) {}};
  const std::vector<int> atm(6);
  std::vector<int> bas;
  for (int shell = 0; shell < 7000; ++shell) bas.insert(bas.end(), {0, 3, 1, 1, 0, 0, 0, 0});
  const std::vector<double> env(20);
  const auto error = check::throws<outcore::Error>([&] { Basis(atm, bas, env, true, good); });
  check::equal(error.errno_value(), EOVERFLOW);
  check::contains(error.what(), "70000 functions");
}

TEST_MAIN
