// Requests of all layers in one list, and errors of requests for which nobody has waited.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "array/arrays.hpp"
#include "array/transfers.hpp"
#include "base/completion.hpp"
#include "base/request_state.hpp"
#include "base/undelivered.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/error.hpp"
#include "outcore/exclusive_file.hpp"
#include "outcore/record_file.hpp"
#include "outcore/request.hpp"
#include "outcore/shared_file.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using outcore::test::in_worlds;
using outcore::test::options_in;

namespace {

using Numbers = std::vector<double>;

Strided strided(Numbers& memory) {
  return {reinterpret_cast<std::byte*>(memory.data()), Extents{8}};
}
std::span<std::byte> bytes_of(Numbers& memory) {
  return std::as_writable_bytes(std::span(memory));
}

constexpr std::int64_t count = 1000;

/// One operation of each layer, on numbers that can be recognised.
class Mixture {
 public:
  explicit Mixture(World& world)
      : world_(world),
        global_(world, Extents{count}, ElementType::float64),
        disk_(world, Extents{count}, ElementType::float64),
        shared_(world, "shared"),
        records_(world, "records", {.records = 8}),
        exclusive_("exclusive." + std::to_string(world.rank())),
        echo_(world.register_procedure("echo", [](Call call) { call.answer(call.header()); })) {
    std::iota(numbers_.begin(), numbers_.end(), 1.0);
    if (world.rank() == 0) {
      global_.put(Box::whole(Extents{count}), strided(numbers_));
      disk_.put(Box::whole(Extents{count}), strided(numbers_));
      shared_.write(bytes_of(numbers_), 0);
      records_.put(3, bytes_of(numbers_));
    }
    exclusive_.write(bytes_of(numbers_), 0);
    global_.sync();
    disk_.sync();
    world.barrier();
  }

  ~Mixture() { world_.unregister_procedure(echo_); }

  /// All operations read the same numbers, each into memory of its own; the last one is the call.
  std::vector<Request> begin() {
    const Box all = Box::whole(Extents{count});
    std::vector<Request> requests;
    requests.push_back(exclusive_.read_async(bytes_of(into_[0]), 0));
    requests.push_back(shared_.read_async(bytes_of(into_[1]), 0));
    requests.push_back(records_.get_async(3, bytes_of(into_[2])));
    requests.push_back(global_.get_async(all, strided(into_[3])));
    requests.push_back(disk_.get_async(all, strided(into_[4])));
    requests.push_back(disk_.read_all_async(strided(into_[5]), all));
    requests.emplace_back();  // complete from the first
    requests.push_back(
        world_.call(world_.size() - 1, echo_, bytes_of(numbers_).first(40), {}, {.max_reply_bytes = 40}));
    return requests;
  }

  void check_all(const std::vector<Request>& requests) {
    for (const Numbers& each : into_) check::is_true(each == numbers_);
    const auto reply = requests.back().reply();
    check::is_true(std::ranges::equal(reply, bytes_of(numbers_).first(40)));
  }

 private:
  World& world_;
  GlobalArray global_;
  DiskArray disk_;
  file::SharedFile shared_;
  file::RecordFile records_;
  file::ExclusiveFile exclusive_;
  std::uint32_t echo_;
  Numbers numbers_ = Numbers(count);
  std::vector<Numbers> into_ = std::vector<Numbers>(6, Numbers(count));
};

void in_all_worlds(const std::function<void(World&)>& body) {
  const TemporaryDirectory directory;
  for (const int processes : {1, 2, 4})
    for (const bool apart : {false, true}) in_worlds(processes, options_in(directory, apart), body);
}

/// A request that completes when the test says so.
std::shared_ptr<ComposedRequest> pending_request() {
  return std::make_shared<ComposedRequest>();
}
std::exception_ptr an_error(int errno_value) {
  return std::make_exception_ptr(Error(errno_value, {.attempted = "do something"}));
}

}  // namespace

TEST("wait_all waits for a file, a record, arrays, a collective transfer and a call in one list") {
  in_all_worlds([](World& world) {
    Mixture mixture(world);
    auto requests = mixture.begin();
    wait_all(requests);
    mixture.check_all(requests);
  });
}

TEST("wait_any gives one after the other of such a mixture, and each brings its value") {
  in_all_worlds([](World& world) {
    Mixture mixture(world);
    const auto requests = mixture.begin();
    std::vector<Request> left = requests;
    std::vector<std::size_t> which(left.size());
    std::iota(which.begin(), which.end(), 0u);
    while (!left.empty()) {
      const std::size_t i = wait_any(left);
      check::is_true(left[i].done());
      const std::int64_t moved[] = {8 * count, 8 * count, 8 * count, 0, 0, 0, 0, 40};
      check::equal(left[i].wait(), moved[which[i]]);
      left.erase(left.begin() + std::ptrdiff_t(i));
      which.erase(which.begin() + std::ptrdiff_t(i));
    }
    mixture.check_all(requests);
  });
}

TEST("test ends each of such a mixture without a wait") {
  in_all_worlds([](World& world) {
    Mixture mixture(world);
    auto requests = mixture.begin();
    for (Request& each : requests)
      while (!each.test()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    mixture.check_all(requests);
  });
}

TEST("several threads may wait for one request") {
  in_all_worlds([](World& world) {
    Mixture mixture(world);
    auto requests = mixture.begin();
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) threads.emplace_back([requests]() mutable { wait_all(requests); });
    for (auto& thread : threads) thread.join();
    mixture.check_all(requests);
  });
}

TEST("wait_any sleeps until another thread has ended one") {
  std::vector<std::shared_ptr<ComposedRequest>> states{pending_request(), pending_request()};
  std::vector<Request> requests{Request(states[0]), Request(states[1])};
  std::thread other([&] { states[1]->end_part(); });
  check::equal(wait_any(requests), 1u);
  other.join();
  check::is_true(!requests[0].done());
  states[0]->end_part();
  check::equal(wait_any(requests), 0u);
}

TEST("wait_any of no requests is EINVAL") {
  check::equal(check::throws<Error>([] { (void)wait_any({}); }).errno_value(), EINVAL);
}

TEST("wait_any leaves the error to wait, and each wait throws it") {
  const auto state = pending_request();
  state->end_part(an_error(EIO));
  std::vector<Request> requests{Request(state)};
  check::equal(wait_any(requests), 0u);
  for (int i = 0; i < 2; ++i)
    check::equal(check::throws<Error>([&] { requests[0].wait(); }).errno_value(), EIO);
  check::equal(check::throws<Error>([&] { (void)requests[0].test(); }).errno_value(), EIO);
}

TEST("wait_all waits for all, and throws the first error of the list") {
  std::vector<std::shared_ptr<ComposedRequest>> states{pending_request(), pending_request(),
                                                       pending_request()};
  std::vector<Request> requests;
  for (const auto& each : states) requests.emplace_back(each);
  std::thread other([&] {
    states[2]->end_part(an_error(ENOSPC));
    states[1]->end_part(an_error(EIO));
    states[0]->end_part();
  });
  check::equal(check::throws<Error>([&] { wait_all(requests); }).errno_value(), EIO);
  for (const Request& each : requests) check::is_true(each.done());
  other.join();
}

TEST("a request of parts keeps the first error, and is done with its last part") {
  std::atomic<int> ended{0};
  const auto state = std::make_shared<ComposedRequest>([&](bool failed) { ended += failed ? 10 : 1; });
  state->begin_part();
  state->end_part(an_error(EIO));
  check::is_true(!state->done() && state->failed());
  state->end_part(an_error(ENOSPC));
  check::equal(ended.load(), 10);
  check::equal(check::throws<Error>([&] { Request(state).wait(); }).errno_value(), EIO);
}

TEST("an error that nobody waited for is told once by its owner") {
  Undelivered owner;
  const auto failed = pending_request(), waited_for = pending_request(), well = pending_request();
  for (const auto& each : {waited_for, failed, well}) owner.watch(each);
  waited_for->end_part(an_error(EIO));
  failed->end_part(an_error(ENOSPC));
  well->end_part();
  check::throws<Error>([&] { Request(waited_for).wait(); });
  check::equal(check::throws<Error>([&] { owner.raise(); }).errno_value(), ENOSPC);
  owner.raise();
}

TEST("an owner waits for what is under way before it tells") {
  Undelivered owner;
  const auto state = pending_request();
  owner.watch(state);
  std::thread other([&] { state->end_part(an_error(EIO)); });
  check::equal(check::throws<Error>([&] { owner.raise(); }).errno_value(), EIO);
  other.join();
}

TEST("an owner of many requests keeps those that may fail only") {
  Undelivered owner;
  std::vector<std::weak_ptr<ComposedRequest>> all;
  for (int i = 0; i < 1000; ++i) {
    const auto state = pending_request();
    owner.watch(state);
    state->end_part(i == 17 ? an_error(EIO) : nullptr);
    all.emplace_back(state);
  }
  const auto kept = std::ranges::count_if(all, [](const auto& each) { return !each.expired(); });
  check::is_true(kept < 200);
  check::is_true(!all[17].expired());
  check::equal(check::throws<Error>([&] { owner.raise(); }).errno_value(), EIO);
}

TEST("a put of a global array that nobody waited for is told of by the array, a get is not") {
  for (const bool changes : {true, false}) {
    const auto array = std::make_shared<array::Transfers>();
    for (const bool dropped : {true, false}) {
      check::is_true(array->enter());
      const auto part = pending_request();
      auto transfer = std::make_shared<array::GlobalTransfer>(array, std::vector{Request(part)}, changes);
      array->add(transfer);
      part->end_part(an_error(EIO));
      if (dropped) transfer = nullptr;
      if (changes) check::equal(check::throws<Error>([&] { array->raise_undelivered(); }).errno_value(), EIO);
      array->raise_undelivered();
      if (transfer) check::equal(check::throws<Error>([&] { transfer->deliver(); }).errno_value(), EIO);
    }
    array->finish();  // nothing is in use any more
  }
}

TEST("a sync of another array at one process is an error at all") {
  in_all_worlds([](World& world) {
    GlobalArray first(world, Extents{4}, ElementType::float64),
        second(world, Extents{4}, ElementType::float64);
    if (world.size() > 1) check::throws<Error>([&] { (world.rank() == 0 ? first : second).sync(); });
    first.sync();
    second.sync();
  });
}

TEST_MAIN
