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

/// What each nonblocking operation returns: a read or write of a file, a transfer of an array, a call, a
/// collective transfer. The operation goes on without help of the caller. Copies share it. Memory that it
/// moves is in use until it is done, also when all copies have gone before.
///
/// A failed operation throws from each `wait` and `test`. If it was to change a file or an array, and nobody
/// has waited for it, the next sync, flush or close of that throws its error. Any thread may wait, several at
/// once. In a forked child of the process that began it `wait` and `test` are Error(EBADF).
class OUTCORE_API Request {
 public:
  class State;
  Request() = default;  ///< complete, zero bytes
  explicit Request(std::shared_ptr<State> state) noexcept : state_(std::move(state), "wait for a request") {}

  /// Blocks, asleep, until complete. Returns the bytes that a file or a call moved: fewer than asked for at
  /// the end of a file, the size of a record, the length of a reply. 0 for transfers of arrays, which move
  /// all or fail. Throws what the operation failed with, and Error(EDEADLK) where the wait would never end:
  /// for a call, in a procedure that was not registered as one that may block.
  std::int64_t wait();
  /// True once complete; never waits for a disk or a process. Throws if the operation failed.
  bool test();
  /// True once complete or failed: `wait` would not block. Never throws.
  [[nodiscard]] bool done() const noexcept;
  /// Bytes of the reply of a call for which the caller gave no memory, as long as a copy of the request is
  /// there. Throws Error(EINPROGRESS) before it is done. Empty for everything but a call.
  [[nodiscard]] std::span<std::byte> reply() const;

  [[nodiscard]] const std::shared_ptr<State>& state() const { return state_.pointer(); }

 private:
  friend std::size_t wait_any(std::span<Request> requests);

  Owned<std::shared_ptr<State>> state_;
};

/// Waits for all, then throws the error of the first failed one in the list, if any.
OUTCORE_API void wait_all(std::span<Request> requests);

/// Waits until one is done and returns its position, the first of several; its error, if any, is left for its
/// own `wait`. Throws Error(EINVAL) for an empty list.
OUTCORE_API std::size_t wait_any(std::span<Request> requests);

}  // namespace outcore
