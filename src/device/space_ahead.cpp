#include "device/space_ahead.hpp"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/uninterrupted.hpp"

namespace outcore::device {
namespace {

constexpr std::int64_t min_bytes = 1 << 20;  // smaller files are left alone
constexpr std::int64_t max_bytes = 256 << 20;
constexpr std::int64_t dense_part = 16;  // a file with one part in this many written will become full
constexpr std::int64_t free_part = 8;  // at most one part in this many of the free space is reserved at once

}  // namespace

SpaceAhead::SpaceAhead(const OpenOptions& options, int fd) : fd_(fd), named_(!options.unlink_after_open) {
  struct statfs system{};
  struct stat about{};
  if (!options.sole_writer || options.read_only || fstatfs(fd, &system) != 0 || fstat(fd, &about) != 0)
    return;
  on_ = system.f_type == EXT4_SUPER_MAGIC;  // other file systems do so themselves (xfs), or cannot
  length_ = end_ = about.st_size;
}

ByteRange SpaceAhead::before_write(std::int64_t offset, std::int64_t size_bytes) noexcept {
  if (!on_) return {};
  constexpr auto relaxed = std::memory_order_relaxed;
  const std::int64_t end = offset + size_bytes;
  const std::int64_t written = written_.load(relaxed) + size_bytes;  // threads may lose counts: a guess
  const std::int64_t length = std::max(length_.load(relaxed), end);
  written_.store(written, relaxed);
  length_.store(length, relaxed);
  if (end <= end_.load(relaxed) || written < min_bytes || written < length / dense_part) return {};

  const std::unique_lock lock(mutex_, std::try_to_lock);
  const std::int64_t from = end_.load(relaxed);
  if (!lock || end <= from) return {};
  const std::int64_t to = length + std::min(written, max_bytes);
  end_.store(to, relaxed);
  if (!plenty_free(to - from)) return {};
  reserved_any_.store(true, relaxed);
  return {from, to - from};
}

bool SpaceAhead::plenty_free(std::int64_t size_bytes) const noexcept {
  struct statvfs space{};
  return fstatvfs(fd_, &space) == 0 &&
         static_cast<std::int64_t>(space.f_bavail * space.f_frsize) / free_part >= size_bytes;
}

void SpaceAhead::reserved(std::int64_t size_bytes) noexcept {
  const std::lock_guard lock(mutex_);
  length_ = std::max(length_.load(), size_bytes);
  end_ = std::max(end_.load(), size_bytes);
}

void SpaceAhead::truncated(std::int64_t length_bytes) noexcept {
  const std::lock_guard lock(mutex_);
  length_ = length_bytes;
  end_ = std::min(end_.load(), length_bytes);
  written_ = std::min(written_.load(), length_bytes);
}

/// Not needed for a file without a name, which is about to vanish.
void SpaceAhead::give_back() noexcept {
  struct stat about{};
  if (reserved_any_ && named_ && fstat(fd_, &about) == 0 && end_ > about.st_size)
    static_cast<void>(!uninterrupted([&] {
      return ftruncate(fd_, about.st_size);
    }));  // if it fails, some space is lost until the file goes
}

}  // namespace outcore::device
