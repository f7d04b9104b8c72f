#include <algorithm>
#include <bit>
#include <stdexcept>

#include "chem/ci/space.hpp"
#include "support/check.hpp"

using namespace outcore::chem::ci;

namespace {

Orbitals eight() {
  return Orbitals({0, 0, 1, 1, 1, 2, 3, 3}, 4);
}

}  // namespace

TEST("strings are sorted by irrep, then by value, and each has its rank") {
  const Orbitals orbitals = eight();
  for (int electrons = 0; electrons <= orbitals.count(); ++electrons) {
    const Strings strings(orbitals, electrons);
    check::equal(strings.count(), std::int64_t(strings_by_value(8, electrons).size()));
    for (std::int64_t i = 0; i < strings.count(); ++i) {
      const std::uint64_t mask = strings.mask(i);
      check::equal(std::popcount(mask), electrons);
      check::equal(strings.irrep(i), orbitals.irrep_of(mask));
      check::equal(strings.rank(mask), i);
      if (i > 0 && strings.irrep(i) == strings.irrep(i - 1)) check::is_true(mask > strings.mask(i - 1));
      if (i > 0) check::is_true(strings.irrep(i) >= strings.irrep(i - 1));
    }
  }
}

TEST("64 orbitals") {
  const Orbitals orbitals(std::vector<int>(64, 0), 1);
  const Strings pairs(orbitals, 2);
  check::equal(pairs.count(), 64 * 63 / 2);
  check::equal(pairs.mask(pairs.count() - 1), std::uint64_t{3} << 62);
  check::equal(pairs.rank(std::uint64_t{1} | std::uint64_t{1} << 63), pairs.count() - 63);
  check::equal(Strings(orbitals, 64).mask(0), ~std::uint64_t{0});
  check::equal(Strings(orbitals, 63).count(), 64);
  check::throws<std::invalid_argument>([&] { Strings(orbitals, 32); });
}

TEST("strings that contain a hole from a value on are the last of their sector") {
  const Orbitals orbitals = eight();
  for (int electrons : {1, 2, 3, 8}) {
    const Strings strings(orbitals, electrons);
    for (std::uint64_t hole : strings_by_value(8, electrons - 1))
      for (int irrep = 0; irrep < 4; ++irrep) {
        const std::int64_t first = strings.first_reached(irrep, hole);
        check::is_true(first >= strings.offset(irrep) && first <= strings.offset(irrep + 1));
        for (std::int64_t i = strings.offset(irrep); i < strings.offset(irrep + 1); ++i) {
          std::uint64_t most = 0;  // the highest mask with one electron less
          for (std::uint64_t each = strings.mask(i); each; each &= each - 1)
            most = std::max(most, strings.mask(i) & ~(each & -each));
          check::equal(most >= hole, i >= first);
        }
      }
  }
}

TEST("blocks of Be2 [9s2p1d] and numbers of determinants") {
  const int counts[] = {13, 1, 3, 3, 1, 13, 3, 3};
  std::vector<int> irreps;
  for (int g = 0; g < 8; ++g) irreps.insert(irreps.end(), std::size_t(counts[g]), g);
  const Space space(Orbitals(irreps, 8), 4, 4, 0, true);
  check::equal(space.determinants(), std::int64_t{1061893156});
  const std::int64_t blocks[] = {187306596, 87759424,  129231424, 129231424,
                                 87759424,  182142016, 129231424, 129231424};
  for (int g = 0; g < 8; ++g) check::equal(space.alpha.count(g) * space.beta.count(g), blocks[g]);
}

TEST("what is no space is refused") {
  check::throws<std::invalid_argument>([] { Orbitals({1, 0}, 2); });
  check::throws<std::invalid_argument>([] { Orbitals({0, 2}, 2); });
  check::throws<std::invalid_argument>([] { Orbitals({0}, 3); });
  check::throws<std::invalid_argument>([] { Orbitals(std::vector<int>(65, 0), 1); });
  check::throws<std::invalid_argument>([] { Space(eight(), 9, 0, 0, false); });
  check::throws<std::invalid_argument>([] { Space(eight(), -1, 0, 0, false); });
  check::throws<std::invalid_argument>([] { Space(eight(), 3, 2, 0, true); });
  check::throws<std::invalid_argument>([] { Space(eight(), 3, 3, 4, true); });
}

TEST_MAIN
