// Cache warm-up: bringing a whole file into the page cache, in the background.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "device/buffer.hpp"
#include "device/descriptor.hpp"
#include "outcore/extend/engine.hpp"

namespace outcore::device {

/// Reads a file from its beginning to its end through the page cache, and forgets what it read. Stops early
/// at an error (a reader of the bytes gets it again) and when told to. Measured: [M12].
class CacheWarmUp final : public Task {
 public:
  /// Reads through a descriptor of its own, so that the kernel sees a sequential reader. Throws Error.
  CacheWarmUp(int fd, std::uint32_t trace_file);
  CacheWarmUp(const CacheWarmUp&) = delete;
  CacheWarmUp& operator=(const CacheWarmUp&) = delete;

  void stop() noexcept { over_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool over() const noexcept { return over_.load(std::memory_order_relaxed); }

  const Operation* next() noexcept override;
  void result(std::int64_t value) noexcept override;

 private:
  Descriptor file_;
  const std::uint32_t trace_file_;
  Buffer buffer_;
  iovec entry_;
  Operation operation_;
  std::uint64_t start_ns_ = 0;
  std::atomic<bool> over_{false};
};

}  // namespace outcore::device
