// Space on the disk that a write has taken before it was refused more.
#pragma once

#include <atomic>
#include <cstdint>

namespace outcore::device {

/// For one file. A write that had arrived in part when the disk, a quota or a limit of the file's size
/// refused the rest gives back what it has taken behind everything that was written before it: the file has a
/// hole there, and others have the room. Bytes before stay as the write has left them. Thread-safe.
class RefusedSpace {
 public:
  explicit RefusedSpace(int fd);  ///< which outlives it

  /// Where the space begins that a write takes which begins now.
  [[nodiscard]] std::int64_t before_write(std::int64_t offset) const noexcept;
  void written(std::int64_t end) noexcept;  ///< by a write that is complete
  void truncated(std::int64_t length_bytes) noexcept;
  /// From there to the end of what has arrived, if `error` says that there was no room for more.
  void give_back(int error, std::int64_t begin, std::int64_t end) const noexcept;

 private:
  const int fd_;
  std::atomic<std::int64_t> end_{0};  ///< of what was there, and of all writes that were complete
};

}  // namespace outcore::device
