// How the processes of a host wake one another: a word in memory they share, on which a process sleeps.
// Beside it there is room for other things that they share.
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

/// A word for each process. Those of the own host can be woken, from the others' nothing is known. Where the
/// processes of a host do not see one another, as in containers of their own, only the own word is within
/// reach. Any thread; `sleep` by one at a time.
class OUTCORE_SIBLING HostWakeUp {
 public:
  /// Collective. Each process has `beside_bytes` of zeroed memory beside its word.
  explicit HostWakeUp(Transport& transport, std::size_t beside_bytes = 0);

  [[nodiscard]] bool reaches(int process) const noexcept {
    return words_[static_cast<std::size_t>(process)] != nullptr;
  }
  [[nodiscard]] bool reaches_all() const noexcept { return reaches_all_; }
  /// What lies beside the word of a process (of the own host, too, null if they do not see one another).
  [[nodiscard]] std::byte* memory(int process) const noexcept;
  /// Of a process within reach; as it sees itself.
  [[nodiscard]] int pid(int process) const noexcept { return words_[static_cast<std::size_t>(process)]->pid; }

  /// Wakes a process that sleeps. Nothing if it is out of reach.
  void wake(int process) noexcept;
  /// The same, but `wakes` of a process that is awake do not change: for what it finds by looking before it
  /// sleeps. The one that sleeps is woken on another core than this thread's. (A process that polls reads
  /// them all the time; to change them would cost it, and the caller, the way of a cache line.)
  /// Measured: [M30].
  void wake_sleeper(int process) noexcept;

  /// How often this process was woken; modulo 2^32.
  [[nodiscard]] std::uint32_t wakes() const noexcept { return mine().wakes; }
  /// False if a process of the own host has ended, or is about to; of others nothing is known.
  [[nodiscard]] bool alive(int process) const;

  /// Sleeps until wakes() is not `seen`, but no longer than `timeout`, and not if `come()` says that there is
  /// something. What others do before `wake_sleeper` (seq_cst) is seen by `come`, or it wakes.
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
  std::unique_ptr<Segment> shared_;  // null: nobody else is within reach
  Word alone_{};
  std::vector<Word*> words_;  // null: on another host
};

}  // namespace outcore::transport
