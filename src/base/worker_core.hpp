// Where a thread runs that others wake.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace outcore {

/// Lets whoever wakes a worker send it to another core. The scheduler wakes a thread on the core it had last
/// unless it looks for an idle one, which it seldom does where few cores share a cache; there it waits for
/// the end of a time slice (4 ms), or takes turns with who woke it, beside an idle core. All zero at first,
/// so that it may lie in memory that processes share: they may send one another's threads away if they
/// belong to one user.
/// Measured: [M3].
class WorkerCore {
 public:
  /// The worker: before it sleeps. From now until `awake` it may be sent away.
  void here() noexcept {
    if (!awake()) return;  // who was sending it away before has not ended yet
    thread_local const pid_t mine = gettid();
    thread_.store(mine, std::memory_order_relaxed);
    core_.store(sched_getcpu(), std::memory_order_relaxed);
    state_.store(home, std::memory_order_release);
  }

  /// The worker: after that. It may run anywhere again, and nobody sends it away. False if somebody is just
  /// doing so, and does not come to an end.
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

  /// Whoever wakes the worker: before. Nothing happens where the worker may run on this core only.
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

  std::atomic<std::int32_t> core_ = 0;  ///< that it had last
  std::atomic<std::int32_t> thread_ = 0;
  std::atomic<std::uint32_t> state_ = up;
  cpu_set_t allowed_{};  ///< to the worker, before it was sent away
};

}  // namespace outcore
