// The largest disk space that files of this process took at the same time.
#pragma once

#include <cstdint>

#include "base/sibling.hpp"

namespace outcore::device {

/// Registers a file that is open for writing, as long as this object lives. The space decreases only when a
/// file is closed, truncated or punched, so the largest sum is found just before that, and writes need not
/// look. Copies of one file, open twice, count once. Any thread.
class OUTCORE_SIBLING SpaceInUse {
 public:
  /// `fd` stays open for longer than this. Counts nothing if `writes` is false.
  SpaceInUse(int fd, bool writes);
  ~SpaceInUse();
  SpaceInUse(const SpaceInUse&) = delete;
  SpaceInUse& operator=(const SpaceInUse&) = delete;

  /// After bytes were written or reserved.
  static void grown() noexcept;
  /// Before bytes are given back.
  static void shrinks() noexcept;

  /// The most bytes that files open for writing took on disks at the same time, without holes, since the
  /// process began or `forget_peak` was called.
  [[nodiscard]] static std::int64_t peak_bytes() noexcept;
  /// Sets the peak to the space that files take now.
  static void forget_peak() noexcept;

 private:
  int fd_;  // -1: not counted
};

}  // namespace outcore::device
