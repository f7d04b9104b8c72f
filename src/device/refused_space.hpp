// Space on the disk that a write had taken before it failed for lack of space.
#pragma once

#include <atomic>
#include <cstdint>

namespace outcore::device {

/// For one file. If the disk, a quota or a limit of the file's size refuses the rest of a write, the write
/// gives back the space that it has taken behind all earlier writes: the file has a hole there, and others
/// can use the space. Bytes before stay as the write has left them. Thread-safe.
class RefusedSpace {
 public:
  explicit RefusedSpace(int fd);  ///< the descriptor outlives this object

  /// Where the new space of a write that begins now would begin.
  [[nodiscard]] std::int64_t before_write(std::int64_t offset) const noexcept;
  void written(std::int64_t end) noexcept;  ///< by a write that is complete
  void truncated(std::int64_t length_bytes) noexcept;
  /// Gives back the space from there to the end of the written bytes, if `error` is one of missing room.
  void give_back(int error, std::int64_t begin, std::int64_t end) const noexcept;

 private:
  const int fd_;
  std::atomic<std::int64_t> end_{0};  ///< end of the file at the beginning, and of all complete writes
};

}  // namespace outcore::device
