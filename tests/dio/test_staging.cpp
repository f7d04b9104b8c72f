// Waits for memory of a budget end when others release memory, or with an error if there is none.
#include <cerrno>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "chem/failing_memory.hpp"
#include "dio/staging.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore;
using namespace outcore::dio;

namespace {

constexpr std::int64_t mebibyte = 1 << 20;

}  // namespace

TEST("a process has no more under way than its limit, but always something") {
  Budget budget(1 << 30);
  const auto staging = std::make_shared<Staging>(budget);
  check::is_true(staging->try_acquire(32 * mebibyte));
  check::is_true(!staging->try_acquire(1));
  check::equal(budget.used_bytes(), 32 * mebibyte);
  std::thread other([&] {
    staging->acquire(64 * mebibyte);  // alone, as it is larger than the limit
    check::equal(budget.used_bytes(), 64 * mebibyte);
    staging->release(64 * mebibyte);
  });
  staging->release(32 * mebibyte);
  other.join();
  check::equal(budget.used_bytes(), 0);
}

TEST("memory of a budget that others have used up is an error, unless it is staging that will be let go") {
  Budget budget(10 * mebibyte);
  const auto staging = std::make_shared<Staging>(budget);
  Reservation others(budget, 9 * mebibyte, "others");
  const Error error = check::throws<Error>([&] { staging->acquire(2 * mebibyte); });
  check::equal(error.errno_value(), ENOMEM);
  staging->acquire(mebibyte);
  std::thread other([&] {
    staging->acquire(mebibyte);
    staging->release(mebibyte);
  });
  staging->release(mebibyte);
  other.join();
  check::equal(budget.used_bytes(), 9 * mebibyte);
}

TEST("what has been staged is given back with its buffer") {
  Budget budget(1 << 30);
  const auto staging = std::make_shared<Staging>(budget);
  staging->acquire(mebibyte);
  {
    const Staged staged(staging, mebibyte);
    check::equal(staged.span().size(), std::size_t(mebibyte));
  }
  check::equal(budget.used_bytes(), 0);
}

TEST("reply slots are distinct, and who waits gets the first that is let go") {
  Budget budget(1 << 30);
  const auto slots = std::make_shared<ReplySlots>(budget);
  std::vector<std::shared_ptr<std::byte>> held;
  while (auto slot = slots->try_take(ReplySlots::large_bytes)) held.push_back(std::move(slot));
  std::set<std::byte*> places;
  for (const auto& each : held) places.insert(each.get());
  check::equal(places.size(), held.size());
  check::is_true(slots->try_take(ReplySlots::small_bytes) != nullptr, "small ones are others");
  std::byte* taken = nullptr;
  std::thread other([&] { taken = slots->take(ReplySlots::large_bytes).get(); });
  std::byte* const freed = held.back().get();
  held.pop_back();
  other.join();
  check::is_true(taken == freed);
}

TEST("a reply slot is not lost where there is no memory to hand it out") {
  Budget budget(1 << 30);
  const auto slots = std::make_shared<ReplySlots>(budget);
  for (int i = 0; i < 100; ++i) {  // more than there are
    const failing_memory::After after(0, failing_memory::Where::anywhere);
    check::throws<std::bad_alloc>([&] { (void)slots->try_take(ReplySlots::large_bytes); });
  }
  check::is_true(slots->try_take(ReplySlots::large_bytes) != nullptr);
}

TEST_MAIN
