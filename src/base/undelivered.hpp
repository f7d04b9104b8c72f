// Errors of requests that nobody has waited for, kept by the file or array that they change.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "base/request_state.hpp"

namespace outcore {

/// The sync, flush and close of the owner throw these errors. Thread-safe.
class Undelivered {
 public:
  /// Adds a request that may fail. It is kept until it has succeeded or was waited for.
  void watch(std::shared_ptr<Request::State> request);
  /// Adds the error of a request that was destroyed.
  void add(std::exception_ptr error);
  /// Finishes all watched requests. Returns the first error that was not reported, or null; all then count as
  /// reported.
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
