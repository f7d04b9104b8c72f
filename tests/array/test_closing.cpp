// Arrays and worlds that close while operations are under way: they wait for these, and refuse later ones.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "array/arrays.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/error.hpp"
#include "outcore/global_array.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using outcore::test::in_worlds;
using outcore::test::Model;
using outcore::test::options_in;

namespace {

const Extents shape{64, 48};
const Box all = Box::whole(shape);

/// Threads that repeat an operation until it is refused; the destructor joins them.
class Busy {
 public:
  explicit Busy(const std::function<void(int thread)>& body) {
    for (int i = 0; i < 3; ++i)
      threads_.emplace_back([this, body, i] {
        try {
          for (;; ++rounds_) body(i);
        } catch (const Error& error) {
          refusals_ += error.errno_value() == EBADF || error.errno_value() == ESHUTDOWN;
        }
      });
    while (rounds_ < 3) std::this_thread::yield();
  }
  ~Busy() { join(); }
  void join() {
    for (std::thread& each : threads_) each.join();
    threads_.clear();
  }
  [[nodiscard]] int refusals() const { return refusals_; }

 private:
  std::atomic<int> rounds_ = 0, refusals_ = 0;
  std::vector<std::thread> threads_;
};

/// Uses an array in every possible way, each thread of each process in rows of its own.
void use(GlobalArray& array, int thread) {
  const std::int64_t first = 30 * array.world().rank() + 10 * thread;
  const Box rows(Extents{first, 0}, Extents{first + 10, shape[1]});
  Model model(shape);
  std::ranges::fill(model.data, 1.0);
  const std::vector<std::int64_t> indices = {first, 0, first + 9, 47, first + 3, 20};
  std::vector<double> elements(3, 1.0);
  const auto memory = std::as_writable_bytes(std::span(elements)).data();
  if (thread == 0) {
    array.put(rows, model.memory(rows));
    array.scatter(indices, memory);
  } else if (thread == 1) {
    array.get(rows, model.memory(rows));
    array.gather(indices, memory);
  } else {
    array.accumulate(rows, model.memory(rows), nullptr);
    array.scatter_accumulate(indices, memory, nullptr);
  }
}

}  // namespace

TEST("a global array that closes waits for calls of other threads and refuses later ones") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [&](World& world) {
    for (int i = 0; i < 5; ++i) {
      GlobalArray array(world, shape, ElementType::float64);
      Busy busy([&](int thread) { use(array, thread); });
      array.close();
      GlobalArray next(world, shape, ElementType::float64);  // in the same memory
      busy.join();
      check::equal(busy.refusals(), 3);
      next.sync();
      Model model(shape);
      next.get(all, model.memory(all));
      for (const double each : model.data) check::equal(each, 0.0);
      next.close();
    }
  });
}

TEST("a world that closes waits for calls of other threads and refuses later ones") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [&](World& world) {
    GlobalArray array(world, shape, ElementType::float64);
    Busy busy([&](int thread) { use(array, thread); });
    world.close();
    busy.join();
    check::equal(busy.refusals(), 3);
    check::is_true(!array.closed(), "the array was not closed");
  });
}

TEST("several threads may close a global array at once") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [&](World& world) {
    GlobalArray array(world, shape, ElementType::float64);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { array.close(); });
    for (std::thread& each : threads) each.join();
    check::is_true(array.closed(), "closed");
    world.barrier();
  });
}

TEST("a global array that closes waits for the transfers of a disk array with it") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [&](World& world) {
    DiskArray disk(world, shape, ElementType::float64, {.chunk = {8, 8}});
    for (double value = 1; value <= 5; ++value) {
      std::optional<GlobalArray> array(std::in_place, world, shape, ElementType::float64);
      Model model(shape);
      std::ranges::fill(model.data, value);
      if (world.rank() == 0) array->put(all, model.memory(all));
      array->sync();
      Request request = disk.write_all_async(*array, {.box = all, .order = {}}, all);
      if (static_cast<int>(value) % 2) array->close();
      array.reset();
      request.wait();
      Model found(shape);
      disk.read_all_async(found.memory(all), all).wait();
      for (const double each : found.data) check::equal(each, value);
    }
    disk.close();
  });
}

TEST("a transfer of a disk array with a global array that is closed is refused") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [&](World& world) {
    DiskArray disk(world, shape, ElementType::float64, {.chunk = {8, 8}});
    GlobalArray array(world, shape, ElementType::float64);
    array.close();
    const auto error =
        check::throws<Error>([&] { disk.write_all_async(array, {.box = all, .order = {}}, all).wait(); });
    check::equal(error.errno_value(), EBADF);
    disk.close();
  });
}

TEST_MAIN
TEST("a world that closes waits for counters and calls of other threads and refuses later ones") {
  const TemporaryDirectory directory;
  for (int i = 0; i < 5; ++i)
    in_worlds(2, options_in(directory), [&](World& world) {
      Counter counter(world);
      const std::uint32_t nothing = world.register_procedure("nothing", [](Call call) { call.answer({}); });
      Busy busy([&](int thread) {
        if (thread == 0) (void)counter.next();
        if (thread == 1) world.flush();
        if (thread == 2) world.call(1 - world.rank(), nothing, {}).wait();
      });
      world.close();
      busy.join();
      check::equal(busy.refusals(), 3);
    });
}
