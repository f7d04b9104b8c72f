// Errors of requests that nobody has waited for, at the file or array that they were to change.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "base/request_state.hpp"

namespace outcore {

/// Its owner's sync, flush and close throw them. Thread-safe.
class Undelivered {
 public:
  /// A request that may fail. It is kept until it is known to have ended well or to have been waited for.
  void watch(std::shared_ptr<Request::State> request);
  /// The error of a request that is gone.
  void add(std::exception_ptr error);
  /// Finishes all that are watched. The first error that nobody has been told, or null; all count as told.
  [[nodiscard]] std::exception_ptr take();
  /// As `take`, and throws it.
  void raise();

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Request::State>> watched_;
  std::size_t look_at_ = 64;
  std::exception_ptr lost_;
};

}  // namespace outcore
