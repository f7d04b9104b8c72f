// Locks in memory that several processes share.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace outcore::transport {

/// A lock of one word, for short sections. Zeroed memory is an open lock. A thread that waits long sleeps.
class alignas(64) SharedLock {
 public:
  void lock() noexcept;
  void unlock() noexcept;

 private:
  // 0: open, 1: held, 2: held, and a thread sleeps
  std::atomic<std::uint32_t> word_{0};
};

/// One lock for many blocks of memory, so that accumulates to different places rarely meet.
class StripedLocks {
 public:
  static constexpr std::int64_t block_bytes = 64 << 10;
  [[nodiscard]] SharedLock& of(int process, std::int64_t block) noexcept {
    const auto mixed =
        (static_cast<std::uint64_t>(process) * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(block)) *
        0x9e3779b97f4a7c15;
    return locks_[mixed >> 56];
  }

 private:
  std::array<SharedLock, 256> locks_;
};

}  // namespace outcore::transport
