// Worlds over threads: nodes, the gate, regions, counters, locks.
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "outcore/call.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "outcore/world.hpp"
#include "support/check.hpp"

using namespace outcore;

namespace {

/// Runs the body in the world of each of `count` threads, with their memory shared and, as between nodes,
/// not.
void in_world(int count, WorldOptions options, const std::function<void(World&)>& body) {
  for (const bool apart : {false, true}) {
    options.node_for_each_process = apart;
    transport::run_threads(count, [&](std::unique_ptr<transport::Transport> transport) {
      World world(std::move(transport), options);
      body(world);
    });
  }
}

void in_world(int count, const std::function<void(World&)>& body) {
  in_world(count, {}, body);
}

std::int64_t* numbers(const World::Region& region) {
  return reinterpret_cast<std::int64_t*>(region.local());
}

/// A world of one process that at some time gets nonsense from the others.
struct Garbled final : transport::Transport {
  bool now = false;
  std::unique_ptr<transport::Transport> right = transport::self();

  std::string description() const override { return "garbled"; }
  std::string host() const override { return right->host(); }
  void barrier() override {}
  void broadcast(std::span<std::byte> /*data*/, int /*root*/) override {}
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    right->all_gather(mine, all);
  }
  void all_reduce(std::span<double> /*values*/, transport::Reduction /*reduction*/) override {}
  void all_reduce(std::span<std::int64_t> /*values*/, transport::Reduction /*reduction*/) override {
    if (now) throw std::bad_alloc();
  }
  std::unique_ptr<transport::Transport> split(int color, int key) override {
    return right->split(color, key);
  }
  std::unique_ptr<transport::Messages> messages() override { return right->messages(); }
  std::unique_ptr<transport::Segment> allocate(std::size_t size_bytes, bool shared) override {
    return right->allocate(size_bytes, shared);
  }
};

}  // namespace

TEST("the world of a job without MPI is this process, unless a launcher says that there are more") {
  World world = World::job({.memory_bytes = 12345678});
  check::equal(world.size(), 1);
  check::equal(world.budget().limit_bytes(), 12345678);
  setenv("PMI_SIZE", "3", 1);
  const auto error = check::throws<Error>([] { World others = World::job(); });
  unsetenv("PMI_SIZE");
  check::equal(error.errno_value(), ENOTSUP);
  check::contains(error.what(), "PMI_SIZE says that it has 3 processes");
}

TEST("the world of a communicator needs MPI") {
  const auto error = check::throws<Error>([] { World world = World::mpi(0); });
  check::equal(error.errno_value(), ENOTSUP);
  check::contains(error.what(), "no MPI library is loaded");
}

TEST("a world of one") {
  World world = World::self();
  check::equal(world.rank(), 0);
  check::equal(world.size(), 1);
  check::equal(world.node_count(), 1);
  check::equal(world.node_size(), 1);
  world.barrier();
  check::equal(Counter(world).next(), 0);
}

TEST("processes of a host are one node") {
  transport::run_threads(3, [](std::unique_ptr<transport::Transport> transport) {
    World world(std::move(transport));
    check::equal(world.node_count(), 1);
    check::equal(world.node(), 0);
    check::equal(world.node_rank(), world.rank());
    check::equal(world.node_size(), 3);
    check::equal(world.node_transport().size(), 3);
  });
}

TEST("each process can be a node of its own") {
  transport::run_threads(3, [](std::unique_ptr<transport::Transport> transport) {
    World world(std::move(transport), {.node_for_each_process = true});
    check::equal(world.node_count(), 3);
    check::equal(world.node(), world.rank());
    check::equal(world.node_size(), 1);
    check::is_true(world.allocate(100, "test").segment().direct((world.rank() + 1) % 3) == nullptr);
  });
}

TEST("the environment makes each process a node") {
  setenv("OUTCORE_NODES", "processes", 1);
  transport::run_threads(2, [](std::unique_ptr<transport::Transport> transport) {
    check::equal(World(std::move(transport)).node_count(), 2);
  });
  setenv("OUTCORE_NODES", "three", 1);
  const auto error = check::throws<Error>([] { World world(transport::self()); });
  unsetenv("OUTCORE_NODES");
  check::contains(error.what(), "OUTCORE_NODES=three");
}

TEST("a scratch directory that is missing at one process is refused at all") {
  std::atomic<int> refused{0};
  transport::run_threads(3, [&](std::unique_ptr<transport::Transport> transport) {
    const WorldOptions options{.scratch = transport->rank() == 1 ? "/nowhere" : "/tmp"};
    const auto error = check::throws<Error>([&] { World world(std::move(transport), options); });
    check::equal(error.errno_value(), ENOENT);
    check::contains(error.what(), "/nowhere");
    ++refused;
  });
  check::equal(refused, 3);
}

TEST("a step that fails at one process fails at all, with its error") {
  in_world(3, [](World& world) {
    const auto error = check::throws<Error>([&] {
      world.together("work", 0, [&] {
        if (world.rank() == 2)
          throw Error(ENOSPC,
                      {.attempted = "write", .path = "/x", .offset = 7, .size_bytes = 9, .detail = "full"});
      });
    });
    check::equal(error.errno_value(), ENOSPC);
    check::contains(error.what(), "write of 9 bytes at offset 7 of /x: No space left on device (full)");
    world.barrier();
  });
}

TEST("of several errors that of the lowest rank is thrown") {
  in_world(4, [](World& world) {
    const auto error = check::throws<Error>([&] {
      world.together("work", 0, [&] {
        if (world.rank() > 0) throw Error(EIO, {.attempted = "attempt " + std::to_string(world.rank())});
      });
    });
    check::contains(error.what(), "attempt 1");
  });
}

TEST("exceptions of other kinds become errors") {
  in_world(2, [](World& world) {
    const auto plain = check::throws<Error>([&] {
      world.together("work", 0, [&] {
        if (world.rank() == 0) throw std::runtime_error("boo");
      });
    });
    check::contains(plain.what(), "boo");
    const auto memory = check::throws<Error>([&] {
      world.together("work", 0, [&] {
        if (world.rank() == 1) throw std::bad_alloc();
      });
    });
    check::equal(memory.errno_value(), ENOMEM);
  });
}

TEST("a process that calls something else is named, and nobody runs the step") {
  in_world(3, [](World& world) {
    std::atomic<int> steps{0};
    const auto error = check::throws<Error>([&] {
      if (world.rank() == 1)
        world.barrier();
      else
        world.together("work", 0, [&] { ++steps; });
    });
    check::equal(error.errno_value(), EINVAL);
    check::contains(error.what(), "process 1 called 'barrier' instead");
    check::contains(error.what(), "'work'");
    check::equal(steps, 0);
    world.barrier();
  });
}

TEST("a process with other arguments is named") {
  in_world(3, [](World& world) {
    const auto error =
        check::throws<Error>([&] { (void)world.allocate(world.rank() == 2 ? 100 : 200, "an array"); });
    check::contains(error.what(), "process 2 came with other arguments");
    check::contains(error.what(), "allocate an array");
    check::equal(world.budget().used_bytes(), 0);
  });
}

TEST("the budget is checked before memory is taken, and agreed on") {
  in_world(2, {.memory_bytes = 1000000}, [](World& world) {
    world.budget().reserve(world.rank() == 1 ? 900000 : 0, "something else");
    const auto error = check::throws<Error>([&] { (void)world.allocate(200000, "a large array"); });
    check::equal(error.errno_value(), ENOMEM);
    check::contains(error.what(), "memory for a large array of 200704 bytes");
    check::contains(error.what(), "of the budget of 1000000 bytes");
    check::equal(world.budget().used_bytes(), world.rank() == 1 ? 900000 : 0);
    const auto region = world.allocate(50000, "a small array");
    check::equal(world.budget().used_bytes(), (world.rank() == 1 ? 900000 : 0) + 50048);
  });
}

TEST("a destroyed region gives its budget back") {
  in_world(1, {.memory_bytes = 1000000}, [](World& world) {
    for (int i = 0; i < 10; ++i) (void)world.allocate(600000, "array");
    check::equal(world.budget().used_bytes(), 0);
    check::equal(world.budget().peak_bytes(), 602112);
  });
}

TEST("regions are zero at first, also where others have been") {
  in_world(3, [](World& world) {
    for (int round = 0; round < 5; ++round)
      for (const std::int64_t size : {std::int64_t{40}, std::int64_t{200000}, std::int64_t{40} << 20}) {
        const auto region = world.allocate(size, "test");
        for (std::int64_t i = 0; i < size / 8; i += 5) check::equal(numbers(region)[i], 0);
        std::memset(region.local(), 0xff, static_cast<std::size_t>(size));
      }
  });
}

TEST("regions that live at once do not touch one another") {
  in_world(2, [](World& world) {
    std::vector<World::Region> regions;
    for (int i = 0; i < 50; ++i) {
      regions.push_back(world.allocate(8 + i * 1000, "test"));
      std::memset(regions.back().local(), i + 1, static_cast<std::size_t>(regions.back().size_bytes()));
      if (i % 3 == 2) regions.erase(regions.begin() + i / 3);
    }
    for (const auto& region : regions)
      check::equal(static_cast<int>(region.local()[0]),
                   static_cast<int>(region.local()[region.size_bytes() - 1]));
  });
}

TEST("processes may destroy regions in different order") {
  in_world(2, [](World& world) {
    for (int round = 0; round < 20; ++round) {
      auto a = world.allocate(30 << 20, "a"), b = world.allocate(1000, "b");
      numbers(a)[0] = numbers(b)[0] = -1;
      if (world.rank() == 0)
        a = {};
      else
        b = {};
      const auto c = world.allocate(500, "c");  // a and b are still in use somewhere
      check::equal(numbers(c)[0], 0);
      std::int64_t mine[] = {c.offset()}, all[2];
      world.transport().all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
      check::equal(all[0], all[1]);
    }
  });
}

TEST("a barrier makes puts visible") {
  in_world(3, [](World& world) {
    const auto region = world.allocate(8, "test");
    std::int64_t value = world.rank() + 1;
    const int next = (world.rank() + 1) % 3;
    auto put = region.segment().put({.process = next,
                                     .offset = region.offset(),
                                     .stride_bytes = {8},
                                     .memory = reinterpret_cast<std::byte*>(&value),
                                     .memory_stride_bytes = {8},
                                     .count = {1},
                                     .type = ElementType::int64});
    put.wait();
    world.barrier();
    check::equal(numbers(region)[0], (world.rank() + 2) % 3 + 1);
  });
}

TEST("a counter counts each number once") {
  in_world(4, [](World& world) {
    Counter counter(world);
    for (int round = 0; round < 3; ++round) {
      std::vector<std::int64_t> mine(4000, 0);
      for (std::int64_t i; (i = counter.next(3)) < 4000;)
        for (std::int64_t j = i; j < std::min<std::int64_t>(i + 3, 4000); ++j)
          mine[static_cast<std::size_t>(j)] = 1;
      world.transport().all_reduce(mine, transport::Reduction::sum);
      for (const std::int64_t times : mine) check::equal(times, 1);
      counter.reset();
    }
  });
}

TEST("a counter with a limit reaches it, and who asks for too much takes nothing from the others") {
  in_world(4, [](World& world) {
    Counter counter(world);
    constexpr std::int64_t limit = 3000;
    std::vector<std::int64_t> counted{0};
    if (world.rank() == 0) {
      for (int i = 0; i < 3000; ++i) check::is_true(!counter.next_within(limit, limit + 1));
    } else {
      for (int i = 0; i < 1000; ++i) {
        check::is_true(counter.next_within(limit, 1).has_value());
        ++counted[0];
      }
    }
    world.transport().all_reduce(counted, transport::Reduction::sum);
    check::equal(counted[0], limit);
    check::equal(counter.next(0), limit);
    check::is_true(!counter.next_within(limit, 1));
    check::is_true(counter.next_within(limit, 0) == limit);
    world.barrier();
  });
}

TEST("a lock in a procedure that must not block is an error, and can be had afterwards") {
  in_world(2, [](World& world) {
    Lock lock(world);
    const auto locks = world.register_procedure("lock", [&](Call call) {
      lock.lock();
      call.answer();
    });
    if (world.rank() == 0) {
      lock.lock();
      const auto ask = [&] { world.call(1, locks, {}).wait(); };
      check::equal(check::throws<Error>(ask).errno_value(), EDEADLK);
      lock.unlock();
    }
    world.barrier();
    lock.lock();
    lock.unlock();
    world.barrier();
  });
}

TEST("a lock is held by one at a time, also among threads of a process") {
  in_world(3, [](World& world) {
    Lock lock(world);
    const auto region = world.allocate(8, "test");
    const auto work = [&] {
      for (int i = 0; i < 20; ++i) {
        lock.lock();
        std::int64_t value = 0;
        transport::StridedTransfer transfer{.process = 1,
                                            .offset = region.offset(),
                                            .stride_bytes = {8},
                                            .memory = reinterpret_cast<std::byte*>(&value),
                                            .memory_stride_bytes = {8},
                                            .count = {1},
                                            .type = ElementType::int64};
        region.segment().get(transfer).wait();
        ++value;
        region.segment().put(transfer).wait();
        lock.unlock();
      }
    };
    std::thread thread(work);
    work();
    thread.join();
    world.barrier();
    if (world.rank() == 1) check::equal(numbers(region)[0], 3 * 2 * 20);
    world.barrier();
  });
}

TEST("releasing a lock that is not held is refused") {
  World world(transport::self());
  Lock lock(world);
  check::equal(check::throws<Error>([&] { lock.unlock(); }).errno_value(), EPERM);
  lock.lock();
  lock.unlock();
}

TEST("what is left of a closed world says that it was closed") {
  in_world(2, [](World& world) {
    Counter counter(world);
    const auto region = world.allocate(100, "test");
    world.close();
    world.close();
    check::equal(check::throws<Error>([&] { world.barrier(); }).errno_value(), EBADF);
    check::equal(check::throws<Error>([&] { counter.next(); }).errno_value(), EBADF);
    check::contains(check::throws<Error>([&] { (void)region.local(); }).what(), "its world was closed");
    check::equal(check::throws<Error>([&] { (void)world.allocate(1, "test"); }).errno_value(), EBADF);
  });
}

TEST("a process that closes early makes errors of what the others call, until they close") {
  in_world(3, [](World& world) {
    if (world.rank() == 1) return world.close();
    for (int i = 0; i < 3; ++i) {
      const auto error = check::throws<Error>([&] { world.barrier(); });
      check::contains(error.what(), "process 1 called 'close' instead");
    }
    check::throws<Error>([&] { (void)world.allocate(100, "array"); });
  });
}

TEST("a process that closes while others are in a step makes an error of its end") {
  in_world(3, [](World& world) {
    world.enter("step", 0);
    if (world.rank() == 1) return world.close();
    const auto error = check::throws<Error>([&] { world.leave(std::nullopt); });
    check::contains(error.what(), "process 1 called 'close' instead");
  });
}

TEST("a step that fails while another process closes fails with its own error") {
  in_world(3, [](World& world) {
    world.enter("step", 0);
    if (world.rank() == 1) return world.close();
    std::optional<Error> failure;
    if (world.rank() == 2) failure = Error(EIO, {.attempted = "work"});
    check::equal(check::throws<Error>([&] { world.leave(failure); }).errno_value(), EIO);
  });
}

TEST("a world is closed even if others bring what makes no sense") {
  auto garbled = std::make_unique<Garbled>();
  bool& now = garbled->now;
  World world(std::move(garbled));
  now = true;
  check::throws<std::bad_alloc>([&] { world.close(); });
  check::is_true(world.closed());
}

TEST("the halves of a collective call work as the whole") {
  in_world(2, [](World& world) {
    world.enter("work", 7);
    std::optional<Error> failure;
    if (world.rank() == 1) failure = Error(EIO, {.attempted = "read"});
    check::equal(check::throws<Error>([&] { world.leave(failure); }).errno_value(), EIO);
    world.enter("more", 8);
    world.leave({});
    check::throws<Error>([&] { world.enter("other", static_cast<std::uint64_t>(world.rank())); });
  });
}

TEST("a process that cannot make what it comes with makes its error that of all") {
  in_world(3, [](World& world) {
    const auto come = [&](int strays) {
      world.enter("work", [&]() -> std::uint64_t {
        if (world.rank() == strays) throw std::runtime_error("not ready: " + std::to_string(strays));
        return strays < 0 ? 7 : static_cast<std::uint64_t>(world.rank());  // an error counts before those
      });
    };
    for (const int strays : {0, 2}) {
      const auto error = check::throws<Error>([&] { come(strays); });
      check::contains(error.what(), "not ready: " + std::to_string(strays));
      come(-1);
    }
    check::contains(check::throws<Error>([&] { come(3); }).what(), "other arguments");
  });
}

TEST("options of a world that one process cannot make are an error at all") {
  transport::run_threads(3, [](std::unique_ptr<transport::Transport> transport) {
    const int rank = transport->rank();
    const auto error = check::throws<Error>([&] {
      const World world(std::move(transport), [&]() -> WorldOptions {
        if (rank == 1) throw std::runtime_error("not here");
        return {};
      });
    });
    check::contains(error.what(), "not here");
  });
}

TEST("a region may outlive its world") {
  World::Region region;
  {
    World world(transport::self());
    region = world.allocate(100, "test");
  }
  check::throws<Error>([&] { (void)region.segment(); });
}

TEST("fingerprints of different bytes differ") {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(fingerprint(std::as_bytes(std::span(&i, 1))));
  check::equal(seen.size(), 1000U);
}

TEST_MAIN
