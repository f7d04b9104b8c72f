#include "chem/hf/keep_rule.hpp"
#include "model.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore::chem;

TEST("everything or nothing is kept, whatever the bound") {
  for (double bound : {0.0, 1e-300, 1e-10, 10.0}) {
    check::is_true(KeepRule(true).keeps(0, 0, 0, 0, bound));
    check::is_true(!KeepRule(false).keeps(0, 0, 0, 0, bound));
  }
}

TEST("the score is the product of the factors of both pairs and the worth of the bound") {
  const auto basis = model::basis({3, 4, 3});
  check::equal(basis->kinds(), 2);
  const KeepRule rule(*basis, {2, 3, 5}, {7, 11, 13}, -1, 1);
  check::equal(rule.score(0, 2, 0, 0, 0.5), 2.0 * 2 * 7);
  check::equal(rule.score(0, 1, 1, 1, 1.99), 3.0 * 5 * 11);
  check::equal(rule.score(1, 0, 2, 0, 2.0), 3.0 * 2 * 13);
  check::equal(rule.score(0, 0, 0, 0, 0.1), 2.0 * 2 * 7);   // beyond the ends the first
  check::equal(rule.score(0, 0, 0, 0, 1e9), 2.0 * 2 * 13);  // and the last
}

TEST("a quartet is kept from the least score on") {
  const auto basis = model::basis({3, 4});
  check::is_true(KeepRule(*basis, {2, 3, 5}, {1}, 0, 4).keeps(0, 0, 0, 0, 1));
  check::is_true(!KeepRule(*basis, {2, 3, 5}, {1}, 0, 4.1).keeps(0, 0, 0, 0, 1));
}

TEST("factors that do not fit the basis are refused") {
  const auto basis = model::basis({3, 4});
  check::throws<outcore::Error>([&] { KeepRule(*basis, {1, 2}, {1}, 0, 1); });
  check::throws<outcore::Error>([&] { KeepRule(*basis, {1, 2, 3}, {}, 0, 1); });
}

TEST_MAIN
