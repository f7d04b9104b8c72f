// Transfers under way between one process and a global array; the array cannot close before they end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "base/request_state.hpp"
#include "base/undelivered.hpp"
#include "outcore/global_array.hpp"
#include "world/users.hpp"

namespace outcore::array {

class Transfers;

/// A transfer in several parts.
class GlobalTransfer final : public FinishedByWaiter {
 public:
  GlobalTransfer(std::shared_ptr<Transfers> transfers, std::vector<Request> operations, bool changes)
      : transfers_(std::move(transfers)), operations_(std::move(operations)), changes_(changes) {}
  ~GlobalTransfer() override;
  [[nodiscard]] bool done() const noexcept override;
  bool help() noexcept override;
  /// If nobody has waited for it and it changes the array, the array reports its error.
  void hand_over_error() noexcept;

 private:
  void end() override;

  std::shared_ptr<Transfers> transfers_;
  std::vector<Request> operations_;
  const bool changes_;  ///< the array
};

/// Counts the calls and the requests that use the memory of an array. Thread-safe.
class Transfers final : public world::User {
 public:
  /// False once the array is closing; else the caller calls `leave` in the end.
  [[nodiscard]] bool enter() noexcept;
  void leave() noexcept;
  /// A request that goes on after its call, and takes over the use of the call.
  void add(const std::shared_ptr<GlobalTransfer>& request);
  /// Begins a transfer of many calls: closing waits for it before it refuses calls. False once closing has
  /// begun.
  [[nodiscard]] bool hold();
  void let_go();
  /// Also completes the requests, whoever holds them; they keep their errors.
  void finish() noexcept override;
  /// Completes the requests, and throws the error of a put or accumulate that nobody has waited for.
  void raise_undelivered();

  Undelivered undelivered;  ///< errors of puts and accumulates
  std::mutex close_mutex;   ///< one thread closes; others wait for it
  std::atomic<bool> closed = false;

 private:
  [[nodiscard]] bool complete_requests() noexcept;

  static constexpr std::uint32_t closing = 1u << 31;
  std::atomic<std::uint32_t> uses_ = 0;  // and the bit `closing`
  std::mutex mutex_;                     // guards the members below
  std::condition_variable held_;
  int holds_ = 0;
  bool no_more_holds_ = false;
  std::vector<std::weak_ptr<GlobalTransfer>> requests_;
};

}  // namespace outcore::array
