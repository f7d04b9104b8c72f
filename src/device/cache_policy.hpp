// The path of each request of a file: through the page cache or past it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "device/cache_warm_up.hpp"
#include "device/file.hpp"
#include "device/transfer.hpp"
#include "outcore/extend/engine.hpp"

namespace outcore::device {

/// Decides for the requests of one file, by their properties and the results of earlier ones. Thread-safe; a
/// race between notes of threads may change the path of a request, never its bytes.
class CachePolicy {
 public:
  /// `options` and the descriptor outlive it.
  CachePolicy(const OpenOptions& options, int buffered_fd, std::uint32_t trace_file);

  struct Choice {
    IoPath io_path = IoPath::buffered;
    /// As trace::Event::stands_for. A read that detects whether it must wait is slower, and so is a timed
    /// read. If no read has waited for a long time, only some reads do both, as samples.
    std::uint8_t stands_for = 1;
  };
  [[nodiscard]] Choice blocking(Operation::Kind kind, std::int64_t offset, std::int64_t size);
  [[nodiscard]] IoPath nonblocking(Operation::Kind kind, std::int64_t offset, std::int64_t size);

  /// Whether a nonblocking read should try the page cache at once: if it would go through the cache anyway,
  /// or if the cache holds its range. For other reads the attempt alone would fill the cache: the kernel
  /// reads ahead even for a read that may not wait.
  [[nodiscard]] bool copies_at_once(std::int64_t offset, std::int64_t size);

  /// Whether the page cache holds the range, or a part of it that is not on the disk yet.
  [[nodiscard]] bool resident(std::int64_t offset, std::int64_t size);

  void completed(const Transfer& transfer) noexcept;
  /// A blocking read had to wait for the disk.
  void missed(const Transfer& transfer, std::uint64_t nanoseconds);
  void stop() noexcept;  ///< background work ends soon

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

  std::atomic<std::int64_t> read_directly_{0};  ///< bytes of the first pass over the file so far
  std::atomic<bool> filled_{false};             ///< the kernel was told to read ahead
  std::atomic<std::int64_t> lost_ns_{0};        ///< time that scattered blocking reads waited for the disk
  std::atomic<std::uint32_t> since_miss_{0};    ///< small reads since the last one that had to wait
  std::atomic<std::uint32_t> sequential_misses_{0};                ///< in succession, of small reads
  std::atomic<std::int64_t> resident_begin_{0}, resident_end_{0};  ///< last range found in the page cache
  std::atomic<std::uint32_t> found_resident_{0};  ///< consecutive large blocking reads that were in the cache
  std::atomic<bool> warmed_up_{false};  ///< all of the file is being read into the page cache, or was
  std::shared_ptr<CacheWarmUp> warm_up_;
  std::atomic<CacheWarmUp*> begun_{};  ///< the same, once it has begun
};

}  // namespace outcore::device
