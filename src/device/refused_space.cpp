#include "device/refused_space.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/uninterrupted.hpp"

namespace outcore::device {

RefusedSpace::RefusedSpace(int fd) : fd_(fd) {
  struct stat about{};
  if (fstat(fd, &about) == 0) end_ = about.st_size;
}

std::int64_t RefusedSpace::before_write(std::int64_t offset) const noexcept {
  return std::max(offset, end_.load(std::memory_order_relaxed));
}

void RefusedSpace::written(std::int64_t end) noexcept {
  std::int64_t before = end_.load(std::memory_order_relaxed);
  while (before < end && !end_.compare_exchange_weak(before, end, std::memory_order_relaxed)) {
  }
}

void RefusedSpace::truncated(std::int64_t length_bytes) noexcept {
  end_.store(length_bytes, std::memory_order_relaxed);
}

void RefusedSpace::give_back(int error, std::int64_t begin, std::int64_t end) const noexcept {
  if (end <= begin || (error != ENOSPC && error != EDQUOT && error != EFBIG)) return;
  // File systems without holes keep it: the file is as good.
  static_cast<void>(uninterrupted(
      [&] { return fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, end - begin); }));
}

}  // namespace outcore::device
