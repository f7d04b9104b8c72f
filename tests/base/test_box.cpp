// Index arithmetic, and strided copies against a loop over all elements.
#include <algorithm>
#include <cerrno>
#include <numeric>
#include <random>
#include <vector>

#include "outcore/box.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore;

namespace {

/// Memory of an array whose axes lie in the order given, some of them backwards, with gaps; and its strides.
struct Layout {
  Extents stride;
  std::int64_t first = 0, bytes = 0;
};

Layout layout(const Extents& count, std::size_t element_bytes, std::mt19937& random) {
  std::vector<int> order(static_cast<std::size_t>(count.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  Layout made{count, 0, 0};
  auto step = static_cast<std::int64_t>(element_bytes);
  for (const int axis : order) {
    const bool backwards = random() % 4 == 0;
    made.stride[axis] = backwards ? -step : step;
    if (backwards) made.first += step * (count[axis] - 1);
    step *= count[axis] + static_cast<std::int64_t>(random() % 2);
  }
  made.bytes = step;
  return made;
}

void copies_like_a_loop(unsigned seed) {
  std::mt19937 random(seed);
  const int rank = static_cast<int>(random() % 5);
  Extents count = Extents::filled(rank, 1);
  for (int i = 0; i < rank; ++i) count[i] = 1 + static_cast<std::int64_t>(random() % (rank < 3 ? 70 : 9));
  const std::size_t size = std::size_t{1} << random() % 5;
  const Layout from = layout(count, size, random), to = layout(count, size, random);
  std::vector<std::byte> source(static_cast<std::size_t>(from.bytes)),
      target(static_cast<std::size_t>(to.bytes));
  for (std::byte& each : source) each = static_cast<std::byte>(random());
  std::vector<std::byte> expected = target;
  for (std::int64_t k = 0; k < count.product(); ++k) {
    std::int64_t rest = k, at_from = from.first, at_to = to.first;
    for (int i = rank - 1; i >= 0; --i) {
      at_from += rest % count[i] * from.stride[i];
      at_to += rest % count[i] * to.stride[i];
      rest /= count[i];
    }
    std::copy_n(&source[static_cast<std::size_t>(at_from)], size, &expected[static_cast<std::size_t>(at_to)]);
  }
  copy_strided(target.data() + to.first, to.stride, source.data() + from.first, from.stride, count, size);
  check::is_true(target == expected);
}

}  // namespace

TEST("strided copies move every element to its place") {
  for (unsigned seed = 0; seed < 400; ++seed) copies_like_a_loop(seed);
}

TEST("an empty count copies nothing") {
  std::byte source{1}, target{2};
  copy_strided(&target, {1}, &source, {1}, {0}, 1);
  check::is_true(target == std::byte{2});
}

TEST("intersections are never negative") {
  const Box a{{0, 0}, {4, 4}}, b{{2, 6}, {9, 9}};
  check::is_true(intersection(a, b).empty());
  check::is_true((intersection(a, {{1, 2}, {9, 3}}) == Box{{1, 2}, {4, 3}}));
}

TEST("permutations follow numpy") {
  const int order[] = {2, 0, 1};
  check::is_true((permuted({10, 20, 30}, order) == Extents{30, 10, 20}));
}

TEST("a permutation that names an axis twice is refused") {
  const int order[] = {0, 0};
  check::equal(check::throws<Error>([&] { (void)permuted({1, 2}, order); }).errno_value(), EINVAL);
}

TEST("an array of nine dimensions is refused") {
  check::equal(check::throws<Error>([&] { (void)Extents({1, 1, 1, 1, 1, 1, 1, 1, 1}); }).errno_value(),
               EINVAL);
}

TEST("slices have as many elements as steps meet") {
  using outcore::Slices;
  check::equal(Slices({0, 3}, {10, 9}, {3, 6}).shape().text(), "[4, 1]");
  check::equal(Slices({0, 3}, {10, 3}, {3, 6}).shape().text(), "[4, 0]");
  check::equal(Slices(Box{{2, 3}, {4, 9}}).shape().text(), "[2, 6]");
  check::equal(Slices({0}, {10}, {Slices::max_step}).shape().text(), "[1]");
  check::equal(Slices({0}, {10}, {0}).shape().text(), "[10]");
}

TEST("slices fit into an array if their box does and their steps are possible") {
  using outcore::Slices;
  check::is_true(Slices({0, 3}, {10, 9}, {3, 6}).fits({10, 9}));
  check::is_true(!Slices({0, 3}, {10, 9}, {3, 6}).fits({10, 8}), "beyond the end");
  check::is_true(!Slices({-1, 3}, {10, 9}, {3, 6}).fits({10, 9}), "before the begin");
  check::is_true(!Slices({5}, {4}, {1}).fits({10}), "turned round");
  check::is_true(!Slices({0}, {10}, {0}).fits({10}) && !Slices({0}, {10}, {-1}).fits({10}));
  check::is_true(!Slices({0}, {10}, {Slices::max_step + 1}).fits({10}));
  check::is_true(!Slices({0}, {10}, {1}).fits({10, 10}) && !Slices({0}, {10}, {1, 1}).fits({10}), "ranks");
}

TEST("slices within a box are those of their elements that lie in it") {
  using outcore::Slices;
  std::mt19937 random(3);
  const auto number = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % std::uint64_t(end));
  };
  for (int repeat = 0; repeat < 2000; ++repeat) {
    const std::int64_t begin = number(20), end = begin + number(20), step = 1 + number(7);
    const std::int64_t from = number(40), to = from + number(20);
    const Slices all({begin}, {end}, {step});
    Extents first;
    const Slices inside = all.within({{from}, {to}}, first);
    std::int64_t count = 0;
    for (std::int64_t k = 0, at = begin; at < end; ++k, at += step) {
      if (at < from || at >= to) continue;
      if (count++ == 0) {
        check::equal(first[0], k);
        check::equal(inside.box.begin[0], at);
      }
    }
    check::equal(inside.shape()[0], count);
  }
}

TEST_MAIN
