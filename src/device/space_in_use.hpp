// The most disk space that files of this process took at the same time.
#pragma once

#include <cstdint>

#include "base/sibling.hpp"

namespace outcore::device {

/// Of a file that is open for writing, for as long as it lives. Space only falls where a file is closed, cut
/// or punched, so the largest sum is found just before that, and no write has to look. Copies of one file,
/// open twice, count once. Any thread.
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

  /// Bytes that files which were open for writing together took on disks at most, holes left out, since the
  /// process began or `forget_peak`.
  [[nodiscard]] static std::int64_t peak_bytes() noexcept;
  /// The peak is what files take now.
  static void forget_peak() noexcept;

 private:
  int fd_;  // -1: not counted
};

}  // namespace outcore::device
