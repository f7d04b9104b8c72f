// What is under way between one process and a global array, so that the array does not close before it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "outcore/array/global_array.hpp"
#include "world/users.hpp"

namespace outcore::array {

/// Counts the calls and the requests that use the memory of an array. Thread-safe.
class Transfers final : public world::User {
 public:
  /// False once the array is closing; else the caller calls `leave` in the end.
  [[nodiscard]] bool enter() noexcept;
  void leave() noexcept;
  /// A request that goes on after its call; the use of the call is now that of the request.
  void add(const std::shared_ptr<GlobalArray::Request::State>& request);
  /// Whole transfers, of many calls: closing waits for them before it refuses calls. False when it began to.
  [[nodiscard]] bool hold();
  void let_go();
  /// Completes the requests, too, whoever holds them: they keep their errors.
  void finish() noexcept override;

  std::mutex close_mutex;  ///< one thread closes; others wait for it
  std::atomic<bool> closed = false;

 private:
  [[nodiscard]] bool complete_requests() noexcept;

  static constexpr std::uint32_t closing = 1u << 31;
  std::atomic<std::uint32_t> uses_ = 0;  // and the bit `closing`
  std::mutex mutex_;                     // of all below
  std::condition_variable held_;
  int holds_ = 0;
  bool no_more_holds_ = false;
  std::vector<std::weak_ptr<GlobalArray::Request::State>> requests_;
};

}  // namespace outcore::array

namespace outcore {

struct GlobalArray::Request::State {
  explicit State(std::shared_ptr<array::Transfers> given) : transfers(std::move(given)) {}
  ~State() { finish(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void finish() noexcept;
  [[nodiscard]] bool test();
  void deliver();  ///< throws the error, once; with the lock

  std::mutex mutex;
  std::vector<transport::Operation> operations;
  std::exception_ptr error;
  std::shared_ptr<array::Transfers> transfers;  ///< null when complete

 private:
  void complete() noexcept;
};

}  // namespace outcore
