// Free runs: joined with their neighbours, found by length and by place, never lost.
#include <random>
#include <utility>
#include <vector>

#include "base/gaps.hpp"
#include "support/check.hpp"

using outcore::Gaps;

TEST("what is given back joins both neighbours") {
  Gaps gaps;
  gaps.give(0, 10);
  gaps.give(20, 10);
  check::is_true(!gaps.take_tightest(11));
  gaps.give(10, 10);
  check::equal(gaps.take_tightest(30).value(), 0);
  check::equal(gaps.total(), 0);
}

TEST("the tightest run is taken, the lowest of several") {
  Gaps gaps;
  gaps.give(0, 10);
  gaps.give(20, 5);
  gaps.give(40, 5);
  check::equal(gaps.take_tightest(4).value(), 20);
  check::equal(gaps.take_tightest(1).value(), 24);
  check::equal(gaps.take_tightest(6).value(), 0);
  check::equal(gaps.total(), 4 + 5);
}

TEST("the lowest numbers at a step leave what is before them") {
  Gaps gaps;
  gaps.give(1, 100);
  check::equal(gaps.take_lowest(16, 16).value(), 16);
  check::equal(gaps.take_lowest(15, 1).value(), 1);
  check::is_true(!gaps.take_lowest(16, 128));
  check::equal(gaps.total(), 100 - 31);
}

TEST("random runs never overlap, and all are one again at the end") {
  constexpr std::int64_t all = 1 << 14;
  Gaps gaps;
  gaps.give(0, all);
  std::vector<char> used(all);
  std::vector<std::pair<std::int64_t, std::int64_t>> held;
  std::mt19937 random(11);
  std::int64_t taken = 0;
  for (int turn = 0; turn < 5000; ++turn) {
    if (held.empty() || random() % 2 == 0) {
      const std::int64_t count = 1 + random() % 300, step = 1 << random() % 5;
      const auto first = turn % 2 == 0 ? gaps.take_tightest(count) : gaps.take_lowest(count, step);
      if (!first) continue;
      if (turn % 2 != 0) check::equal(*first % step, 0);
      for (std::int64_t i = 0; i < count; ++i)
        check::is_true(std::exchange(used.at(static_cast<std::size_t>(*first + i)), 1) == 0, "overlap");
      held.emplace_back(*first, count);
      taken += count;
    } else {
      std::swap(held[random() % held.size()], held.back());
      const auto [first, count] = held.back();
      held.pop_back();
      std::fill_n(used.begin() + first, count, 0);
      gaps.give(first, count);
      taken -= count;
    }
    check::equal(gaps.total(), all - taken);
  }
  for (const auto& [first, count] : held) gaps.give(first, count);
  check::equal(gaps.take_tightest(all).value(), 0);
}

TEST_MAIN
