// Where a thread runs that others wake.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace outcore {

/// Lets whoever wakes a worker send it to another core. The scheduler wakes a thread on the core it had last
/// unless it looks for an idle one, which it seldom does where few cores share a cache; there it waits for
/// the end of a time slice (4 ms), or takes turns with who woke it, beside an idle core. All zero at first,
/// so that it may lie in memory that processes share: they may send one another's threads away if they
/// belong to one user.
class WorkerCore {
 public:
  /// The worker: before it sleeps. It may run anywhere again.
  void here() noexcept {
    anywhere();
    thread_local const pid_t mine = gettid();
    thread_.store(mine, std::memory_order_relaxed);
    core_.store(sched_getcpu() + 1, std::memory_order_release);
  }

  /// The worker that was `here` last may run anywhere again.
  void anywhere() noexcept {
    std::uint32_t state = state_.load(std::memory_order_acquire);
    for (int i = 0; state == leaving && i < patience; ++i) {  // a moment, unless who does it has died
      std::this_thread::yield();
      state = state_.load(std::memory_order_acquire);
    }
    if (state != away) return;
    sched_setaffinity(thread_.load(std::memory_order_relaxed), sizeof allowed_, &allowed_);
    state_.store(home, std::memory_order_release);
  }

  /// Whoever wakes the worker: before. Nothing happens where the worker may run on this core only.
  void leave_mine() noexcept {
    const int mine = sched_getcpu();
    if (mine < 0 || core_.load(std::memory_order_acquire) != mine + 1) return;
    std::uint32_t state = home;
    if (!state_.compare_exchange_strong(state, leaving, std::memory_order_acq_rel)) return;
    const pid_t thread = thread_.load(std::memory_order_relaxed);
    bool gone = sched_getaffinity(thread, sizeof allowed_, &allowed_) == 0;
    if (gone) {
      cpu_set_t others = allowed_;
      CPU_CLR(mine, &others);
      gone = CPU_COUNT(&others) > 0 && sched_setaffinity(thread, sizeof others, &others) == 0;
    }
    if (gone) core_.store(0, std::memory_order_relaxed);
    state_.store(gone ? away : home, std::memory_order_release);
  }

 private:
  static constexpr int patience = 1000;
  enum State : std::uint32_t { home, leaving, away };

  std::atomic<std::int32_t> core_ = 0;  ///< that it had last, counted from 1
  std::atomic<std::int32_t> thread_ = 0;
  std::atomic<std::uint32_t> state_ = home;
  cpu_set_t allowed_{};  ///< to the worker, before it was sent away
};

}  // namespace outcore
