#include <array>
#include <cerrno>
#include <map>
#include <set>

#include "chem/hf/shell_group.hpp"
#include "chem/hf/slab.hpp"
#include "model.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore::chem;

namespace {

using Labels = std::array<int, 4>;
using Images = std::vector<int>;

/// Reversal of the shells, exchange of neighbours, and both. The number of shells is even.
Images reversal_and_exchange(int shells) {
  Images images;
  for (int shell = 0; shell < shells; ++shell) images.push_back(shells - 1 - shell);
  for (int shell = 0; shell < shells; ++shell) images.push_back(shell ^ 1);
  for (int shell = 0; shell < shells; ++shell) images.push_back((shells - 1 - shell) ^ 1);
  return images;
}

/// Calls use(i, j, k, l) for all unique quartets.
template <class Use>
void all_quartets(int shells, Use&& use) {
  for (int i = 0; i < shells; ++i)
    for (int j = 0; j <= i; ++j)
      for (int k = 0; k <= i; ++k)
        for (int l = 0; l <= (k == i ? j : k); ++l) use(Labels{i, j, k, l});
}

/// The different quartets among a quartet and its images, each with its unique labels.
std::set<Labels> orbit(const Labels& quartet, const Images& images, int shells) {
  std::set<Labels> found{quartet};
  for (std::size_t at = 0; at < images.size(); at += std::size_t(shells)) {
    Labels moved;
    for (std::size_t n = 0; n < 4; ++n) moved[n] = images[at + std::size_t(quartet[n])];
    auto [p, q, r, s] = moved;
    if (p < q) std::swap(p, q);
    if (r < s) std::swap(r, s);
    if (std::pair(p, q) < std::pair(r, s)) std::swap(p, r), std::swap(q, s);
    found.insert({p, q, r, s});
  }
  return found;
}

}  // namespace

TEST("one quartet of each orbit, the largest, stands for all of it") {
  const int shells = 8;
  const auto basis = model::basis(std::vector<int>(shells, 2));
  const auto images = reversal_and_exchange(shells);
  const ShellGroup group(*basis, images);
  check::equal(group.order(), 4);
  std::set<int> sizes;
  all_quartets(shells, [&](const Labels& quartet) {
    const auto all = orbit(quartet, images, shells);
    const auto [i, j, k, l] = quartet;
    check::equal(std::size_t(group.copies(i, j, k, l)), quartet == *all.rbegin() ? all.size() : 0);
    if (group.copies(i, j, k, l) > 0) check::is_true(group.stands(i, j));
    sizes.insert(int(all.size()));
  });
  check::is_true(sizes == std::set<int>{1, 2, 4});
}

TEST("what is no group of permutations of like shells is refused") {
  const auto basis = model::basis({2, 2, 3, 2});
  const auto refused = [&](const Images& images) {
    const auto error = check::throws<outcore::Error>([&] { ShellGroup(*basis, images); });
    check::equal(error.errno_value(), EINVAL);
  };
  refused({1, 0, 2});                 // of other shells
  refused({1, 0, 2, 4});              // no shell
  refused({2, 1, 0, 3});              // not alike
  refused({0, 1, 2, 3});              // the identity
  refused({1, 3, 2, 0});              // not its own inverse
  refused({1, 0, 2, 3, 3, 1, 2, 0});  // products are missing
  refused({1, 1, 2, 3});              // no permutation
  check::equal(ShellGroup(*basis, Images{1, 0, 2, 3}).order(), 2);
  check::equal(ShellGroup(*basis, Images{}).order(), 1);
}

TEST(
    "with a group quartets that stand for others are there alone, by the bound of all copies, without bias") {
  const int shells = 40;
  const auto basis = model::basis(std::vector<int>(shells, 2));
  const auto group = std::make_shared<const ShellGroup>(*basis, reversal_and_exchange(shells));
  for (const double threshold : {0.01, 2.0, 100.0}) {
    const Screening screening(*basis, threshold, 1, nullptr, group);
    std::map<Labels, Screening::Quartet> found;
    for (int i = 0; i < shells; ++i)
      for (int j = 0; j <= i; ++j) {
        const auto rare = screening.rare(i, j);
        for (int k = 0; k <= i; ++k)
          screening.quartets(i, j, k, rare, 0, [&](const Screening::Quartet& each, double) {
            check::is_true(found.emplace(Labels{i, j, k, each.l}, each).second, "a quartet is there twice");
          });
      }
    double sum = 0, expected = 0, variance = 0;
    std::uint64_t integrals = 0;
    all_quartets(shells, [&](const Labels& quartet) {
      const auto [i, j, k, l] = quartet;
      const int copies = group->copies(i, j, k, l);
      const double bound = copies * screening.bound(i, j) * screening.bound(k, l);
      const auto at = found.find(quartet);
      if (at != found.end()) {
        check::equal(int(at->second.copies), copies);
        integrals += 6 * 6 * 6 * 6;
      }
      if (bound >= threshold) {
        check::equal(at->second.weight, 1.0);
      } else {
        if (at != found.end()) sum += at->second.weight * bound;
        expected += bound;
        variance += bound * (threshold - bound);
      }
    });
    check::equal(screening.integrals(), integrals);
    check::is_true(std::abs(sum - expected) < 4 * std::sqrt(variance), "biased");
    check::is_true(std::sqrt(variance) < expected / 4, "too few for the test");
  }
}

TEST("values of a slab count as many times as there are copies") {
  const int shells = 4;
  const auto basis = model::basis(std::vector<int>(shells, 2));
  const auto group = std::make_shared<const ShellGroup>(*basis, reversal_and_exchange(shells));
  const Screening all(*basis, 1e-12, 1), few(*basis, 1e-12, 1, nullptr, group);
  SlabMaker of_all(*basis, all), of_few(*basis, few);
  const auto values = [&](SlabMaker& maker, const Screening& screening) {
    std::map<Labels, double> found;  // the first value of each quartet
    for (const auto& task : screening.tasks())
      maker.run(task, {}, [&](const Slab& slab) {
        for (std::size_t n = 0; n < slab.shells.size(); ++n)
          found[{slab.i, slab.j, slab.k, slab.shells[n]}] = slab.row(0)[6 * n];
      });
    return found;
  };
  const auto alone = values(of_all, all), together = values(of_few, few);
  check::is_true(!together.empty() && together.size() < alone.size() / 2);
  for (const auto& [labels, value] : together) {
    const auto [i, j, k, l] = labels;
    check::is_true(std::abs(value - group->copies(i, j, k, l) * alone.at(labels)) < 1e-12 * std::abs(value));
  }
}

TEST_MAIN
