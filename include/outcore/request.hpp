// Requests: handles of nonblocking operations, of every layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "outcore/api.h"
#include "outcore/origin.hpp"

namespace outcore {

/// The handle of a nonblocking operation: a read or write of a file, a transfer of an array, a call, a
/// collective transfer. The operation goes on without help of the caller. Copies of the handle share it. The
/// operation uses its memory until it is done, even if all copies of the handle are destroyed before.
///
/// A failed operation throws from each `wait` and `test`. If it changes a file or an array and nobody has
/// waited for it, the next sync, flush or close of that file or array throws its error. Any thread may wait,
/// also several at once. In a forked child of the process that began it, `wait` and `test` throw
/// Error(EBADF).
class OUTCORE_API Request {
 public:
  class State;
  Request() = default;  ///< complete, zero bytes
  explicit Request(std::shared_ptr<State> state) noexcept : state_(std::move(state), "wait for a request") {}

  /// Blocks, asleep, until complete. Returns a number of bytes: those that a read or write of a file moved
  /// (fewer than requested at the end of the file), the size of a record, the length of the reply to a call.
  /// Returns 0 for transfers of arrays, which move all elements or fail. Throws the error of the operation,
  /// and Error(EDEADLK) where the wait would never end: for a call, inside a procedure that was registered
  /// without `may_block`.
  std::int64_t wait();
  /// True once complete; never waits for a disk or a process. Throws if the operation failed.
  bool test();
  /// True once complete or failed: `wait` would not block. Never throws.
  [[nodiscard]] bool done() const noexcept;
  /// The reply to a call whose caller gave no memory for it; valid as long as a copy of the request exists.
  /// Throws Error(EINPROGRESS) before the call is done. Empty for all other operations.
  [[nodiscard]] std::span<std::byte> reply() const;

  [[nodiscard]] const std::shared_ptr<State>& state() const { return state_.pointer(); }

 private:
  friend std::size_t wait_any(std::span<Request> requests);

  Owned<std::shared_ptr<State>> state_;
};

/// Waits for all, then throws the error of the first failed one in the list, if any.
OUTCORE_API void wait_all(std::span<Request> requests);

/// Waits until one request is done and returns its position in the list, the first of several. Its own `wait`
/// throws its error, if any. Throws Error(EINVAL) for an empty list.
OUTCORE_API std::size_t wait_any(std::span<Request> requests);

}  // namespace outcore
