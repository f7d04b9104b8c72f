// Which way each request of a file takes: through the page cache or past it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "device/cache_warm_up.hpp"
#include "device/file.hpp"
#include "device/transfer.hpp"
#include "outcore/extend/engine.hpp"

namespace outcore::device {

/// Decides for the requests of one file, from what they are and what became of those before. Thread-safe;
/// threads that mix up one another's notes get another path, never other bytes.
class CachePolicy {
 public:
  /// `options` and the descriptor outlive it.
  CachePolicy(const OpenOptions& options, int buffered_fd, std::uint32_t trace_file);

  struct Choice {
    IoPath io_path = IoPath::buffered;
    /// As trace::Event::stands_for: a read that tells whether it has to wait is slower than one that does
    /// not, and so is one that is timed; when none has waited for long, only some are both, for the others.
    std::uint8_t stands_for = 1;
  };
  [[nodiscard]] Choice blocking(Operation::Kind kind, std::int64_t offset, std::int64_t size);
  [[nodiscard]] IoPath nonblocking(Operation::Kind kind, std::int64_t offset, std::int64_t size);

  /// Whether a nonblocking read is to try the page cache at once: one that would go through it anyway, or one
  /// of what it holds. Elsewhere the attempt alone would bring pages there: the kernel reads ahead also for a
  /// read that may not wait.
  [[nodiscard]] bool copies_at_once(std::int64_t offset, std::int64_t size);

  /// Whether the page cache holds the range, or some of it that is not on the disk yet.
  [[nodiscard]] bool resident(std::int64_t offset, std::int64_t size);

  void completed(const Transfer& transfer) noexcept;
  /// A blocking read had to wait for the disk.
  void missed(const Transfer& transfer, std::uint64_t nanoseconds);
  void stop() noexcept;  ///< what goes on in the background ends soon

 private:
  using Kind = Operation::Kind;

  [[nodiscard]] std::int64_t run(const Operation& operation) const noexcept;
  [[nodiscard]] IoPath io_path_of(Kind kind, std::int64_t offset, std::int64_t size);
  [[nodiscard]] std::uint8_t looks_for_misses() noexcept;
  [[nodiscard]] bool worth_caching();
  [[nodiscard]] bool seems_resident(std::int64_t offset, std::int64_t size);
  void note_miss(const Transfer& transfer) noexcept;
  [[nodiscard]] std::int64_t length() const noexcept;
  void warm_up(std::int64_t length_bytes);

  const OpenOptions& options_;
  const int fd_;
  const std::uint32_t trace_file_;
  /// The file fits well into memory up to this size; PageCache::automatic writes larger ones directly.
  std::int64_t max_cached_bytes_ = 0;

  std::atomic<std::int64_t> read_directly_{0};       ///< bytes of the first pass over the file, so far
  std::atomic<bool> filled_{false};                  ///< the kernel was told to read ahead
  std::atomic<std::int64_t> lost_ns_{0};             ///< by scattered blocking reads, waiting for the disk
  std::atomic<std::uint32_t> since_miss_{0};         ///< small reads since the last that was seen to wait
  std::atomic<std::uint32_t> sequential_misses_{0};  ///< in succession, of small reads
  std::atomic<std::int64_t> resident_begin_{0}, resident_end_{0};  ///< last range found in the page cache
  std::atomic<std::uint32_t> found_resident_{0};  ///< large blocking reads in succession that were there
  std::atomic<bool> warmed_up_{false};  ///< all of the file is being read into the page cache, or was
  std::shared_ptr<CacheWarmUp> warm_up_;
  std::atomic<CacheWarmUp*> begun_{};  ///< the same, once it has begun
};

}  // namespace outcore::device
