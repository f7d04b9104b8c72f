// The core of a worker, a thread that others wake.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace outcore {

/// Lets the thread that wakes a worker send it to another core. The scheduler wakes a thread on its last core
/// unless it looks for an idle one, which it seldom does if few cores share a cache. The worker then waits
/// for the end of a time slice (4 ms), or takes turns with the thread that woke it, beside an idle core.
/// Initially all zero, so that it may lie in memory that processes share: processes of one user may move one
/// another's threads. Measured: [M3].
class WorkerCore {
 public:
  /// The worker: before it sleeps. From now until `awake` it may be sent away.
  void here() noexcept {
    if (!awake()) return;  // an earlier thread is still sending it away
    thread_local const pid_t mine = gettid();
    thread_.store(mine, std::memory_order_relaxed);
    core_.store(sched_getcpu(), std::memory_order_relaxed);
    state_.store(home, std::memory_order_release);
  }

  /// The worker: after its sleep. It may run anywhere again, and no thread sends it away. False if a thread
  /// is just doing so and does not finish.
  bool awake() noexcept {
    for (int i = 0; i < patience; ++i) {
      std::uint32_t state = home;
      if (state_.compare_exchange_strong(state, up, std::memory_order_acq_rel) || state == up) return true;
      if (state == away) {
        sched_setaffinity(thread_.load(std::memory_order_relaxed), sizeof allowed_, &allowed_);
        state_.store(up, std::memory_order_release);
        return true;
      }
      std::this_thread::yield();
    }
    return false;
  }

  /// The waking thread: before it wakes the worker. Does nothing if the worker may run on this core only.
  void leave_mine() noexcept {
    const int mine = sched_getcpu();
    if (mine < 0 || core_.load(std::memory_order_acquire) != mine) return;
    std::uint32_t state = home;
    if (!state_.compare_exchange_strong(state, leaving, std::memory_order_acq_rel)) return;
    const pid_t thread = thread_.load(std::memory_order_relaxed);
    bool gone = sched_getaffinity(thread, sizeof allowed_, &allowed_) == 0;
    if (gone) {
      cpu_set_t others = allowed_;
      CPU_CLR(mine, &others);
      gone = CPU_COUNT(&others) > 0 && sched_setaffinity(thread, sizeof others, &others) == 0;
    }
    state_.store(gone ? away : home, std::memory_order_release);
  }

 private:
  static constexpr int patience = 100;
  enum State : std::uint32_t { up, home, leaving, away };

  std::atomic<std::int32_t> core_ = 0;  ///< the last core of the worker
  std::atomic<std::int32_t> thread_ = 0;
  std::atomic<std::uint32_t> state_ = up;
  cpu_set_t allowed_{};  ///< to the worker, before it was sent away
};

}  // namespace outcore
