// Requests: handles of nonblocking operations.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "outcore/origin.hpp"

namespace outcore::device {

class Transfer;

/// A nonblocking read or write under way. Copies share the operation. The buffer belongs to the caller and
/// must stay valid until the request is complete, also when the request object is destroyed before.
/// A failed request throws outcore::Error from `wait`/`test`, once for each call. Any thread may wait. In a
/// forked child that is Error(EBADF).
class Request {
 public:
  Request() = default;  ///< an empty request: complete, zero bytes
  explicit Request(std::shared_ptr<Transfer> transfer)
      : transfer_(std::move(transfer), "wait for a request") {}

  /// Blocks until complete and returns the bytes moved: less than asked for only at the end of a file.
  std::int64_t wait();
  /// True once complete; never blocks. Throws if the operation failed.
  bool test();
  /// True once complete or failed; never throws.
  [[nodiscard]] bool done() const noexcept;

 private:
  friend std::size_t wait_any(std::span<Request> requests);

  Owned<std::shared_ptr<Transfer>> transfer_;
};

/// Waits for all, then throws the error of the first failed one, if any.
void wait_all(std::span<Request> requests);

/// Waits until one is complete and returns its position; its error, if any, is left for its own `wait`.
/// Throws Error(EINVAL) for an empty list.
std::size_t wait_any(std::span<Request> requests);

}  // namespace outcore::device
