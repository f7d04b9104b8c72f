#include <array>
#include <map>

#include "chem/hf/slab.hpp"
#include "model.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore::chem;

namespace {

const std::vector<int> mixed{0, 1, 0, 2, 1, 0, 3, 0, 1};

/// Calls use(i, j, k, l) for all unique quartets.
template <class Use>
void all_quartets(const Basis& basis, Use&& use) {
  for (int i = 0; i < basis.shells(); ++i)
    for (int j = 0; j <= i; ++j)
      for (int k = 0; k <= i; ++k)
        for (int l = 0; l <= (k == i ? j : k); ++l) use(i, j, k, l);
}

using Labels = std::array<int, 4>;

/// The weights of the quartets that are present, by their labels.
std::map<Labels, double> weights(const Basis& basis, const Screening& screening) {
  std::map<Labels, double> found;
  for (int i = 0; i < basis.shells(); ++i)
    for (int j = 0; j <= i; ++j) {
      const auto rare = screening.rare(i, j);
      for (int k = 0; k <= i; ++k)
        screening.quartets(i, j, k, rare, 0, [&](const Screening::Quartet& quartet, double bound) {
          const int l = quartet.l;
          const double weight = quartet.weight;
          check::is_true(std::abs(bound / (weight * screening.bound(i, j) * screening.bound(k, l)) - 1) <
                         1e-12);
          check::is_true(found.emplace(Labels{i, j, k, l}, weight).second, "a quartet is there twice");
        });
    }
  return found;
}

}  // namespace

TEST("bounds are square roots of the largest diagonal integrals") {
  const auto basis = model::basis({3, 4});
  const Screening screening(*basis, 1e-12, 1);
  double largest = 0;
  for (int p = 10; p < 25; ++p)
    for (int q = 0; q < 10; ++q) largest = std::max(largest, model::integral(p, q, p, q));
  check::is_true(std::abs(screening.bound(1, 0) - std::sqrt(largest)) < 1e-14);
  check::equal(screening.bound(0, 1), screening.bound(1, 0));
}

TEST("tasks cover every unique quartet that reaches its limit, and what is there of the others") {
  const auto basis = model::basis(mixed);
  for (double threshold : {1e-12, 1e-2, 0.2, 0.8}) {
    const Screening screening(*basis, threshold, 2);
    const auto found = weights(*basis, screening);
    std::uint64_t integrals = 0;
    all_quartets(*basis, [&](int i, int j, int k, int l) {
      const auto at = found.find({i, j, k, l});
      if (screening.bound(i, j) * screening.bound(k, l) >= threshold) {
        check::is_true(at != found.end());
        check::equal(at->second, 1.0);
      }
      if (at == found.end()) return;
      check::is_true(at->second >= 1);
      integrals += std::uint64_t(basis->size(i) * basis->size(j) * basis->size(k) * basis->size(l));
    });
    check::equal(screening.integrals(), integrals);
  }
}

TEST("what is left out has no bias, far below the limit as well as just below it") {
  const std::vector<int> many(40, 2);
  const auto basis = model::basis(many);
  for (double threshold : {0.01, 2.0, 100.0}) {
    const Screening screening(*basis, threshold, 1);
    const auto found = weights(*basis, screening);
    double sum = 0, expected = 0, variance = 0;
    all_quartets(*basis, [&](int i, int j, int k, int l) {
      const double bound = screening.bound(i, j) * screening.bound(k, l);
      if (bound >= threshold) return;
      const auto at = found.find({i, j, k, l});
      if (at != found.end()) sum += at->second * bound;
      expected += bound;
      variance += bound * (threshold - bound);
    });
    check::is_true(variance > 0);
    check::is_true(std::abs(sum - expected) < 4 * std::sqrt(variance), "biased");
    check::is_true(std::sqrt(variance) < expected / 5, "too few for the test");
  }
}

TEST("limits are those of the accuracy where they are above the threshold") {
  const auto basis = model::basis(mixed);
  const auto steps = std::make_shared<const Accuracy>(0.5);
  check::equal(Screening(*basis, 1e-3, 1, steps).limit(3, 2, 1, 0), steps->limit(3, 2, 1, 0));
  check::equal(Screening(*basis, 0.4, 1, steps).limit(3, 2, 1, 0), 0.4);
}

TEST("the slab maker computes no more than the tasks promise, and all of it where shells are simple") {
  for (const auto& shells : {mixed, std::vector<int>{3, 3, 4, 3}}) {
    const auto basis = model::basis(shells);
    const Screening screening(*basis, 0.2, 1);
    const bool simple = basis->component_count() == basis->shells();
    SlabMaker maker(*basis, screening);
    for (const auto& task : screening.tasks()) {
      const auto before = maker.integrals();
      maker.run(task, {}, [](const Slab&) {});
      const auto computed = maker.integrals() - before;
      check::is_true(simple ? computed == task.integrals : computed <= task.integrals);
    }
  }
}

TEST("tasks come in order of falling cost") {
  const auto basis = model::basis(mixed);
  const Screening screening(*basis, 1e-12, 1);
  for (std::size_t at = 1; at < screening.tasks().size(); ++at)
    check::is_true(screening.tasks()[at - 1].integrals >= screening.tasks()[at].integrals);
}

TEST("stored sizes stay below their bound") {
  const auto basis = model::basis(mixed);
  for (double step : {1e-10, 1e-6, 1e-3}) {
    const Screening screening(*basis, step, 1);
    SlabMaker maker(*basis, screening);
    const Accuracy accuracy(step);
    SlabCodec codec(accuracy);
    std::uint64_t bytes = 0;
    std::vector<std::byte> out;
    for (const auto& task : screening.tasks())
      maker.run(task, {}, [&](const Slab& slab) {
        out.resize(SlabCodec::packed_bound(slab));
        bytes += codec.pack(*basis, slab, out.data());
      });
    check::is_true(bytes > 0 && bytes <= screening.stored_bytes_bound(accuracy));
  }
}

TEST("a threshold that is not positive is refused") {
  const auto basis = model::basis({0});
  const auto error = check::throws<outcore::Error>([&] { Screening(*basis, 0.0, 1); });
  check::equal(error.errno_value(), EINVAL);
}

TEST_MAIN
