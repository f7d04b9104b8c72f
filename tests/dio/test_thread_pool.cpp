// A thread pool runs all of its tasks, in order, by threads of its own.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "dio/thread_pool.hpp"
#include "support/check.hpp"

using outcore::dio::ThreadPool;

TEST("tasks are run in order, by one thread that is not the caller's, and all before the end") {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  std::latch first_may_end(1);
  {
    ThreadPool pool("test-pool");
    pool.add([&] { first_may_end.wait(); });
    for (int i = 0; i < 100; ++i)
      pool.add([&, i] {
        order.push_back(i);
        threads.push_back(std::this_thread::get_id());
      });
    check::is_true(order.empty(), "add does not wait");
    first_may_end.count_down();
  }
  check::equal(order.size(), 100U);
  for (int i = 0; i < 100; ++i) {
    check::equal(order[static_cast<std::size_t>(i)], i);
    check::is_true(threads[static_cast<std::size_t>(i)] == threads.front());
  }
  check::is_true(threads.front() != std::this_thread::get_id());
}

TEST("tasks that wait for one another run at once, in as many threads as there may be") {
  constexpr int most = 3;
  std::latch all_run(most);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  ThreadPool pool("test-pool", most);
  const auto note = [&] {
    const std::lock_guard guard(mutex);
    threads.insert(std::this_thread::get_id());
  };
  for (int i = 0; i < most; ++i)
    pool.add([&] {
      note();
      all_run.arrive_and_wait();
    });
  for (int i = 0; i < 50; ++i) pool.add(note);
  pool.end();
  check::equal(threads.size(), std::size_t{most});
  pool.end();
}

TEST("what a task holds is let go when it has run") {
  ThreadPool pool("test-pool");
  auto held = std::make_shared<int>(1);
  std::weak_ptr<int> seen = held;
  pool.add([kept = std::move(held)] {});
  while (!seen.expired()) std::this_thread::yield();
}

TEST("a thread is let in at once while it has a task, and waits for its turn when it has none") {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  ThreadPool pool("test-pool");
  std::atomic<pid_t> thread{0};
  int policy = -1;
  pool.add([&] {
    policy = sched_getscheduler(0);
    thread = gettid();
    thread.notify_one();
  });
  thread.wait(0);
  check::equal(policy, SCHED_OTHER);
  while (sched_getscheduler(thread) != SCHED_BATCH) std::this_thread::yield();
}

TEST_MAIN
