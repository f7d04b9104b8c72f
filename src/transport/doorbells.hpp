// How the processes of a host wake one another: a word in memory they share, on which a process sleeps.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "outcore/transport/transport.hpp"

namespace outcore::transport {

/// A bell for each process. Those of the own host can be rung, from the others' nothing is known. Where the
/// processes of a host do not see one another, as in containers of their own, only the own bell is within
/// reach. Any thread; `sleep` by one at a time.
class Doorbells {
 public:
  explicit Doorbells(Transport& transport);  ///< collective

  [[nodiscard]] bool reaches(int process) const noexcept {
    return bells_[static_cast<std::size_t>(process)] != nullptr;
  }
  [[nodiscard]] bool reaches_all() const noexcept { return reaches_all_; }

  /// Wakes a process that sleeps. Nothing if it is out of reach.
  void ring(int process) noexcept;
  /// The same, and tells that one more packet is on its way there.
  void announce(int process) noexcept;

  /// How often this process was rung; modulo 2^32, as is the number of packets announced to it.
  [[nodiscard]] std::uint32_t rings() const noexcept { return mine().rings; }
  [[nodiscard]] std::uint32_t announced() const noexcept { return mine().announced; }
  /// False if a process of the own host has ended, or is about to; of others nothing is known.
  [[nodiscard]] bool alive(int process) const;

  /// Sleeps until rings() is not `seen`, but no longer than `longest`.
  void sleep(std::uint32_t seen, std::chrono::microseconds longest) noexcept;

 private:
  struct alignas(64) Bell {
    std::atomic<std::uint32_t> rings, asleep, announced;
    std::atomic<std::int32_t> pid;  // 0: not known yet
  };
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

  [[nodiscard]] Bell& mine() const noexcept { return *bells_[static_cast<std::size_t>(rank_)]; }

  int rank_;
  bool reaches_all_ = false;
  std::unique_ptr<Segment> shared_;  // null: nobody else is within reach
  Bell alone_{};
  std::vector<Bell*> bells_;  // null: on another host
};

}  // namespace outcore::transport
