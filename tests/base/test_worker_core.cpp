// Threads of the library: a thread that wakes one sends it to another core.
#include <latch>
#include <thread>

#include "base/worker_core.hpp"
#include "support/check.hpp"

using outcore::WorkerCore;

namespace {

cpu_set_t only(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  return cores;
}

cpu_set_t allowed(pid_t thread = 0) {
  cpu_set_t cores;
  check::equal(sched_getaffinity(thread, sizeof cores, &cores), 0);
  return cores;
}

void allow(const cpu_set_t& cores) {
  check::equal(sched_setaffinity(0, sizeof cores, &cores), 0);
}

int first_core() {
  const cpu_set_t cores = allowed();
  int core = 0;
  while (!CPU_ISSET(core, &cores)) ++core;
  return core;
}

/// The cores that a worker may use, and those where it ran, from one rest on a core to the next.
struct Rest {
  cpu_set_t asleep{};  ///< after whoever wakes it, on the same core, has asked it to leave
  int woken_on = -1;
  cpu_set_t afterwards{};
};

/// A worker rests on the first core, and may use `cores`.
Rest rest(const cpu_set_t& cores) {
  const cpu_set_t everywhere = allowed();
  const int core = first_core();
  Rest seen;
  WorkerCore place;
  std::latch rests(1), woken(1);
  pid_t id = 0;
  std::thread worker([&] {
    allow(only(core));
    place.here();
    allow(cores);
    id = gettid();
    rests.count_down();
    woken.wait();
    seen.woken_on = sched_getcpu();
    place.here();
    seen.afterwards = allowed();
  });
  rests.wait();
  allow(only(core));
  place.leave_mine();
  seen.asleep = allowed(id);
  woken.count_down();
  worker.join();
  allow(everywhere);
  return seen;
}

}  // namespace

TEST("a worker that rests on the core of whoever wakes it runs on another, and anywhere afterwards") {
  const cpu_set_t everywhere = allowed();
  if (CPU_COUNT(&everywhere) == 1) return;  // the next test is that case
  const Rest seen = rest(everywhere);
  check::is_true(!CPU_ISSET(first_core(), &seen.asleep));
  check::is_true(seen.woken_on != first_core());
  check::is_true(CPU_EQUAL(&seen.afterwards, &everywhere));
}

TEST("a worker that may use one core stays there") {
  const cpu_set_t one = only(first_core());
  const Rest seen = rest(one);
  check::is_true(CPU_EQUAL(&seen.asleep, &one));
  check::equal(seen.woken_on, first_core());
  check::is_true(CPU_EQUAL(&seen.afterwards, &one));
}

TEST("a worker that is awake is not sent away") {
  const cpu_set_t everywhere = allowed();
  allow(only(first_core()));
  WorkerCore place;
  place.here();
  allow(everywhere);
  check::is_true(place.awake());
  std::thread waker([&] {
    allow(only(first_core()));
    place.leave_mine();
  });
  waker.join();
  const cpu_set_t now = allowed();
  check::is_true(CPU_EQUAL(&now, &everywhere));
}

TEST_MAIN
