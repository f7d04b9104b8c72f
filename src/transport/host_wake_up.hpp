// How the processes of a host wake one another: a process sleeps on a word in shared memory. Beside the word
// there is room for other shared data.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/sibling.hpp"
#include "base/worker_core.hpp"
#include "outcore/extend/transport.hpp"

namespace outcore::transport {

/// A word for each process. Processes of the own host can be woken; nothing is known of the others. If the
/// processes of a host do not see one another, as in separate containers, only the own word is within reach.
/// Any thread; `sleep` by one at a time.
class OUTCORE_SIBLING HostWakeUp {
 public:
  /// Collective. Each process has `beside_bytes` of zeroed memory beside its word.
  explicit HostWakeUp(Transport& transport, std::size_t beside_bytes = 0);

  [[nodiscard]] bool reaches(int process) const noexcept {
    return words_[static_cast<std::size_t>(process)] != nullptr;
  }
  [[nodiscard]] bool reaches_all() const noexcept { return reaches_all_; }
  /// The memory beside the word of a process of the own host; null if the two processes do not see one
  /// another.
  [[nodiscard]] std::byte* memory(int process) const noexcept;
  /// Process number of a process within reach, in its own name space.
  [[nodiscard]] int pid(int process) const noexcept { return words_[static_cast<std::size_t>(process)]->pid; }

  /// Wakes a process that sleeps. Does nothing if it is out of reach.
  void wake(int process) noexcept;
  /// The same, but does not change `wakes` of a process that is awake: for events that it finds by looking
  /// before it sleeps. A sleeping process is woken on another core than this thread's. (A polling process
  /// reads `wakes` all the time; each change would cost it, and the caller, the transfer of a cache line.)
  /// Measured: [M30].
  void wake_sleeper(int process) noexcept;

  /// How often this process was woken; modulo 2^32.
  [[nodiscard]] std::uint32_t wakes() const noexcept { return mine().wakes; }
  /// False if a process of the own host has ended, or is about to; nothing is known of other hosts.
  [[nodiscard]] bool alive(int process) const;

  /// Sleeps until wakes() is not `seen`, but no longer than `timeout`, and not if `come()` is true. If
  /// another process acts (seq_cst) before it calls `wake_sleeper`, either `come` sees the action, or the
  /// call wakes this thread.
  template <class Come>
  void sleep(std::uint32_t seen, std::chrono::microseconds timeout, const Come& come) noexcept {
    mine().sleeper.here();
    mine().asleep.store(1);
    if (!come()) sleep(seen, timeout);
    mine().asleep.store(0);
    (void)mine().sleeper.awake();
  }

 private:
  void sleep(std::uint32_t seen, std::chrono::microseconds timeout) noexcept;

  struct alignas(64) Word {
    std::atomic<std::uint32_t> wakes, asleep;
    std::atomic<std::int32_t> pid;  // 0: not known yet
    WorkerCore sleeper;
  };
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

  [[nodiscard]] Word& mine() const noexcept { return *words_[static_cast<std::size_t>(rank_)]; }

  int rank_;
  bool reaches_all_ = false;
  std::unique_ptr<Segment> shared_;  // null: no other process is within reach
  Word alone_{};
  std::vector<Word*> words_;  // null: on another host
};

}  // namespace outcore::transport
