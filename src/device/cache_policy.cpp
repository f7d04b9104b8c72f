#include "device/cache_policy.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <limits>

#include "base/memory_limits.hpp"

namespace outcore::device {
namespace {

/// The memory of the machine, or of the control groups around this process, that the page cache may take.
std::int64_t memory_for_files() {
  std::int64_t left = std::numeric_limits<std::int64_t>::max();
  for (const MemoryLimit& limit : memory_limits())
    if (limit.shared) left = std::min(left, limit.left_bytes);
  return left;
}

}  // namespace

CachePolicy::CachePolicy(const OpenOptions& options, int buffered_fd, std::uint32_t trace_file)
    : options_(options), fd_(buffered_fd), trace_file_(trace_file) {
  if (options.page_cache == PageCache::automatic) max_cached_bytes_ = memory_for_files() / 2;
}

/// In the calling thread. The engine of the process is not started for that.
std::int64_t CachePolicy::run(const Operation& operation) const noexcept {
  return options_.engine ? options_.engine->run(operation) : run_by_default(operation);
}

/// -1: unknown.
std::int64_t CachePolicy::length() const noexcept {
  struct stat about{};
  return fstat(fd_, &about) == 0 ? about.st_size : -1;
}

// ---- the choice

CachePolicy::Choice CachePolicy::blocking(Kind kind, std::int64_t offset, std::int64_t size) {
  Choice choice{.io_path = io_path_of(kind, offset, size)};
  if (choice.io_path == IoPath::scattered) {
    choice.stands_for = looks_for_misses();
    if (choice.stands_for == 0) choice.io_path = IoPath::buffered;
  } else if (choice.io_path == IoPath::either && kind == Kind::read && size >= Transfer::direct_above_bytes &&
             seems_resident(offset, size)) {
    choice.io_path = IoPath::buffered;
  }
  return choice;
}

IoPath CachePolicy::nonblocking(Kind kind, std::int64_t offset, std::int64_t size) {
  const IoPath io_path = io_path_of(kind, offset, size);
  return io_path == IoPath::scattered && looks_for_misses() == 0 ? IoPath::buffered : io_path;
}

bool CachePolicy::copies_at_once(std::int64_t offset, std::int64_t size) {
  const IoPath io_path = io_path_of(Kind::read, offset, size);
  return io_path == IoPath::either ? resident(offset, size) : io_path != IoPath::direct;
}

IoPath CachePolicy::io_path_of(Kind kind, std::int64_t offset, std::int64_t size) {
  switch (options_.page_cache) {
    case PageCache::buffered:
      return IoPath::buffered;
    case PageCache::direct:
      return IoPath::direct;
    case PageCache::automatic:
      break;
  }
  const bool small = size < Transfer::direct_above_bytes;
  if (kind == Kind::write) {
    const bool large_file = std::max(options_.expected_bytes, offset + size) > max_cached_bytes_;
    return large_file && !small ? IoPath::either : IoPath::buffered;
  }
  // Single pieces in the page cache would slow down the reader of the whole file.
  const CacheWarmUp* const task = begun_.load(std::memory_order_acquire);
  if (task && !task->over()) return IoPath::either;
  if (small) return IoPath::scattered;
  return worth_caching() ? IoPath::buffered : IoPath::either;
}

std::uint8_t CachePolicy::looks_for_misses() noexcept {
  constexpr std::uint32_t all_of_the_first = 1000;
  constexpr std::uint8_t one_in = 16;
  const std::uint32_t count = since_miss_.load(std::memory_order_relaxed);
  since_miss_.store(count + 1, std::memory_order_relaxed);
  if (count < all_of_the_first) return 1;
  return count % one_in == 0 ? one_in : 0;
}

/// The first pass over a file that is not in memory is read directly, at the speed of the device. A reader
/// that makes a second pass will make more: then the page cache is filled, if the file fits well, and the
/// kernel reads ahead, in large pages.
bool CachePolicy::worth_caching() {
  const std::int64_t read_bytes = read_directly_.load(std::memory_order_relaxed);
  if (read_bytes == 0) return false;
  const std::int64_t size = length();
  if (size < 0 || size > max_cached_bytes_ || read_bytes < size) return false;
  if (!filled_.exchange(true, std::memory_order_relaxed)) posix_fadvise(fd_, 0, 0, POSIX_FADV_NORMAL);
  return true;
}

// ---- what is in the page cache

/// Asks the kernel. Consecutive requests are checked together, except large ones, for which a wrong answer
/// would mean a long wait for the disk. Measured: [M15].
bool CachePolicy::resident(std::int64_t offset, std::int64_t size) {
  constexpr std::int64_t window = 1 << 20, most = 8 << 20, large = 64 << 10;
  const std::int64_t begin = resident_begin_.load(std::memory_order_relaxed);
  const std::int64_t end = resident_end_.load(std::memory_order_relaxed);
  if (size <= large && begin <= offset && offset + size <= end) return true;
  const auto ask = [&](std::int64_t from, std::int64_t to) {
    return run({.kind = Kind::resident, .fd = fd_, .offset = from, .size_bytes = to - from}) >= to - from;
  };
  const bool onward = size <= large && begin <= offset && offset <= end;
  std::int64_t known = onward ? (offset + size + window - 1) / window * window : offset + size;
  if (!ask(onward ? end : offset, known)) {
    known = offset + size;
    if (!onward || !ask(offset, known)) return false;
  }
  resident_begin_.store(onward ? std::max(begin, known - most) : offset, std::memory_order_relaxed);
  resident_end_.store(known, std::memory_order_relaxed);
  return true;
}

/// A check of every page of a large read costs 3 % of the copy. After several consecutive reads were all in
/// the cache, a check of the last page mostly stands for the others. Measured: [M15].
bool CachePolicy::seems_resident(std::int64_t offset, std::int64_t size) {
  constexpr std::uint32_t a_run = 8, all_of_one_in = 16;
  const std::uint32_t found = found_resident_.load(std::memory_order_relaxed);
  const bool is =
      found < a_run || found % all_of_one_in == 0 ? resident(offset, size) : resident(offset + size - 1, 1);
  found_resident_.store(is ? found + 1 : 0, std::memory_order_relaxed);
  return is;
}

// ---- what became of requests

void CachePolicy::completed(const Transfer& transfer) noexcept {
  if (transfer.is_write()) return;
  if (transfer.direct_bytes() > 0)
    read_directly_.fetch_add(transfer.direct_bytes(), std::memory_order_relaxed);
  const bool small = transfer.size_bytes() < Transfer::direct_above_bytes;
  if (small && transfer.missed()) note_miss(transfer);
  if (!small && sequential_misses_.load(std::memory_order_relaxed) != 0)  // somebody reads ahead
    sequential_misses_.store(0, std::memory_order_relaxed);
}

/// Small reads that wait for the disk one after another show that nobody reads ahead for them
/// (SequentialBuffer does after two reads), so the kernel is told to.
void CachePolicy::note_miss(const Transfer& transfer) noexcept {
  constexpr std::uint32_t a_run = 4;
  if (!transfer.sequential || options_.page_cache != PageCache::automatic)
    return sequential_misses_.store(0, std::memory_order_relaxed);
  if (sequential_misses_.fetch_add(1, std::memory_order_relaxed) + 1 == a_run)
    posix_fadvise(fd_, 0, 0, POSIX_FADV_NORMAL);
}

/// Blocking reads that wait for the disk, at places all over a file that fits well into memory, will reach
/// most of it. Once they have lost a sixteenth of the time in which a slow disk streams the file, the whole
/// file is read into the page cache, in the background. So this never costs more than a few times the lost
/// time. The lost time is the time beyond the move of the bytes, which is little for large reads.
void CachePolicy::missed(const Transfer& transfer, std::uint64_t nanoseconds) {
  constexpr std::int64_t slow_bytes_per_ns = 1, fast_bytes_per_ns = 2, min_bytes = 4 << 20;
  since_miss_.store(0, std::memory_order_relaxed);
  if (transfer.sequential || options_.page_cache != PageCache::automatic) return;
  const auto lost = std::max<std::int64_t>(
      0, static_cast<std::int64_t>(nanoseconds) - transfer.moved_bytes() / fast_bytes_per_ns);
  const std::int64_t total = lost_ns_.fetch_add(lost, std::memory_order_relaxed) + lost;
  const std::int64_t size = length();
  if (size < min_bytes || size > max_cached_bytes_ || 16 * total * slow_bytes_per_ns < size) return;
  if (!warmed_up_.exchange(true)) warm_up(size);
}

void CachePolicy::warm_up(std::int64_t length_bytes) {
  // Pages that were brought in so far slow it down, too.
  const bool few = run({.kind = Kind::resident, .fd = fd_, .size_bytes = length_bytes}) < length_bytes / 8;
  if (few) posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
  try {
    warm_up_ = std::make_shared<CacheWarmUp>(fd_, trace_file_);
    (options_.engine ? *options_.engine : default_engine()).submit(warm_up_);
    begun_.store(warm_up_.get(), std::memory_order_release);
    read_directly_.fetch_add(length_bytes, std::memory_order_relaxed);  // this was its first pass
  } catch (const std::exception&) {  // short of memory or descriptors: the warm-up only makes reads faster
  }
}

void CachePolicy::stop() noexcept {
  if (CacheWarmUp* const task = begun_.load(std::memory_order_acquire)) task->stop();
}

}  // namespace outcore::device
