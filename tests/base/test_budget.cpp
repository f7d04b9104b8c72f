#include <cerrno>
#include <thread>
#include <vector>

#include "outcore/budget.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore;

TEST("a budget is used up to its limit, not beyond") {
  Budget budget(100);
  budget.reserve(60, "a");
  budget.reserve(40, "b");
  check::equal(budget.used_bytes(), 100);
  const auto error = check::throws<Error>([&] { budget.reserve(1, "a cache"); });
  check::equal(error.errno_value(), ENOMEM);
  check::contains(error.what(), "memory for a cache of 1 bytes");
  check::contains(error.what(), "budget of 100 bytes");
  check::contains(error.what(), "100 are in use, 0 are left");
  budget.release(60);
  budget.reserve(60, "c");
  check::equal(budget.peak_bytes(), 100);
}

TEST("sizes that no budget holds are refused") {
  Budget budget(100);
  check::throws<Error>([&] { budget.reserve(-1, "a"); });
  check::throws<Error>([&] { budget.reserve(INT64_MAX, "a"); });
  check::equal(budget.used_bytes(), 0);
}

TEST("threads reserve at once") {
  Budget budget(1000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) {
        budget.reserve(250, "part");
        budget.release(250);
      }
    });
  for (auto& thread : threads) thread.join();
  check::equal(budget.used_bytes(), 0);
  check::is_true(budget.peak_bytes() <= 1000);
}

TEST_MAIN
