#include "device/transfer.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "base/completion.hpp"

namespace outcore::device {
namespace {

constexpr std::int64_t max_operation_bytes = 1 << 30;  // the kernel moves at most 2 GiB - 4 KiB at a time
constexpr std::int64_t bounce_bytes = 2 << 20;
constexpr int max_retries = 1000;

bool multiple(std::uint64_t value, std::uint32_t unit) {
  return value % unit == 0;
}

}  // namespace

Transfer::Transfer(Operation::Kind kind, IoPath io_path, const Target& target, std::span<const iovec> list,
                   std::int64_t offset, Owner& owner, bool blocking)
    : kind_(kind), io_path_(io_path), blocking_(blocking), target_(target), offset_(offset), owner_(owner) {
  if (list.size() == 1) {
    single_ = list[0];
    list_ = {&single_, 1};
  } else {
    if (!blocking) copied_.assign(list.begin(), list.end());
    list_ = blocking ? list : std::span<const iovec>(copied_);
    window_.resize(std::min<std::size_t>(list.size(), IOV_MAX));
  }
  for (const iovec& part : list_) size_ += static_cast<std::int64_t>(part.iov_len);
  if (io_path == IoPath::scattered)
    step_ = Step::look;
  else if (target_.direct_fd < 0 || io_path == IoPath::buffered)
    step_ = Step::buffered;
  else if (io_path == IoPath::direct)
    step_ = Step::direct;
  else
    step_ = Step::ask;
}

void Transfer::reserve(std::int64_t offset, std::int64_t size_bytes) noexcept {
  operation_ = {.kind = Operation::Kind::reserve,
                .fd = target_.buffered_fd,
                .offset = offset,
                .size_bytes = size_bytes};
  after_reserve_ = std::exchange(step_, Step::reserve);
}

const Operation* Transfer::next() noexcept {
  if (ended_ || moved_ == size_) return complete();
  const std::int64_t rest = std::min(size_ - moved_, max_operation_bytes);
  switch (step_) {
    case Step::reserve:
      return &operation_;
    case Step::ask:
      operation_ = {.kind = Operation::Kind::resident,
                    .fd = target_.buffered_fd,
                    .offset = offset_,
                    .size_bytes = rest};
      return &operation_;
    case Step::look:
    case Step::try_cache:
      return buffered(rest, true);
    case Step::buffered:
      return buffered(rest, false);
    case Step::direct:
      break;
  }
  if (io_path_ == IoPath::either && blocking_ && !is_write()) return read_around(rest);
  // Unaligned ends, up to the next boundary, go through the page cache.
  const std::int64_t align = target_.offset_align;
  const std::int64_t into = (offset_ + moved_) % align;
  if (into != 0) return buffered(std::min(rest, align - into), false);
  if (rest < align) return buffered(rest, false);
  const std::int64_t middle = rest - rest % align;
  if (memory_suits(middle)) return direct(middle);
  if (io_path_ == IoPath::direct) return bounced(std::min(middle, bounce_bytes));
  step_ = Step::buffered;
  return buffered(rest, false);
}

const Operation* Transfer::complete() noexcept {
  owner_.completed(*this);
  if (!blocking_) {
    done_.store(1, std::memory_order_release);
    done_.notify_all();
    owner_.ended();
    announce_completion();
    if (then) then(*this);
  }
  return nullptr;
}

void Transfer::finish() {
  if (done()) return;
  begin_wait();
  const std::uint64_t waits_from_ns = trace::now_ns();
  done_.wait(0, std::memory_order_acquire);
  end_wait(trace::now_ns() - waits_from_ns);
}

void Transfer::begin_wait() {
  Burst::begin_now();
}

void Transfer::end_wait(std::uint64_t waited_ns) noexcept {
  if (waited_ns > 0) owner_.waited(*this, waited_ns);
}

std::exception_ptr Transfer::error() const {
  return error_ == 0 ? nullptr : std::make_exception_ptr(owner_.error_of(*this));
}

const Operation* Transfer::hand_out(int fd, const iovec* list, unsigned count, std::int64_t size) noexcept {
  operation_ = {.kind = kind_,
                .fd = fd,
                .offset = offset_ + moved_,
                .size_bytes = size,
                .list = list,
                .list_count = count};
  operation_.copies = fd == target_.buffered_fd;
  return &operation_;
}

const Operation* Transfer::buffered(std::int64_t limit, bool cached_only) noexcept {
  bouncing_ = false;
  const unsigned count = fill_window(limit);
  hand_out(target_.buffered_fd, list_.size() == 1 ? &window_single_ : window_.data(), count, limit);
  operation_.cached_only = cached_only;
  return &operation_;
}

const Operation* Transfer::direct(std::int64_t limit) noexcept {
  bouncing_ = false;
  const unsigned count = fill_window(limit);
  // If the longest allowed list cuts a window short, it may end anywhere: then the rest goes through the
  // bounce buffer or the page cache.
  if (!multiple(static_cast<std::uint64_t>(limit), target_.offset_align)) return buffered(limit, false);
  return hand_out(target_.direct_fd, list_.size() == 1 ? &window_single_ : window_.data(), count, limit);
}

const Operation* Transfer::bounced(std::int64_t limit) noexcept {
  try {
    if (bounce_.size() == 0) bounce_ = Buffer(static_cast<std::size_t>(bounce_bytes));
  } catch (const Error&) {  // short of memory: the page cache does it as well
    step_ = Step::buffered;
    return buffered(limit, false);
  }
  bouncing_ = true;
  bounce_skip_ = 0;
  bounce_max_ = limit;
  if (is_write()) copy_bounced(limit, false);
  window_single_ = {bounce_.data(), static_cast<std::size_t>(limit)};
  return hand_out(target_.direct_fd, &window_single_, 1, limit);
}

/// Reads the next `limit` bytes, or some of them, extended to the next boundaries.
const Operation* Transfer::read_around(std::int64_t limit) noexcept {
  const std::int64_t align = target_.offset_align;
  const std::int64_t skip = (offset_ + moved_) % align;
  const std::int64_t size = std::min((skip + limit + align - 1) / align * align, bounce_bytes);
  const Operation* operation = bounced(size);
  if (!bouncing_) return buffered(limit, false);
  bounce_skip_ = skip;
  bounce_max_ = std::min(limit, size - skip);
  operation_.offset -= skip;
  return operation;
}

void Transfer::result(std::int64_t value) noexcept {
  if (step_ == Step::reserve) {
    step_ = after_reserve_;
    return;
  }
  if (step_ == Step::ask) return note_resident(value);
  if (value < 0) {
    ended_ = !note_error(static_cast<int>(-value));
    return;
  }
  retries_ = 0;
  if (value == 0) {  // the end of the file; a write that moves nothing would be repeated for ever
    ended_ = true;
    if (is_write()) error_ = EIO;
    return;
  }
  if (operation_.fd == target_.direct_fd) direct_ += value;
  if (bouncing_ && !is_write()) {
    value = std::min(value - bounce_skip_, bounce_max_);
    if (value <= 0) {  // the file ends before the wanted bytes, or the transfer was short: a plain call tells
      step_ = Step::buffered;
      return;
    }
    copy_bounced(value, true);
  }
  advance(value);
  if (step_ == Step::look && moved_ < size_) note_missed();
  if (step_ == Step::try_cache) step_ = Step::direct;  // a short one: the rest is not in the cache
}

void Transfer::note_resident(std::int64_t bytes) noexcept {
  if (bytes < 0)  // the kernel cannot tell
    step_ = is_write() ? Step::direct : Step::try_cache;
  else if (is_write())  // cached pages would have to be dropped, and others may use them
    step_ = bytes > 0 ? Step::buffered : Step::direct;
  else
    step_ = 2 * bytes >= std::min(size_, max_operation_bytes) ? Step::buffered : Step::direct;
}

void Transfer::note_missed() noexcept {
  step_ = Step::buffered;
  missed_ = true;
}

/// True if the transfer goes on nevertheless.
bool Transfer::note_error(int errno_value) noexcept {
  if (step_ == Step::look && errno_value != EINTR) {
    step_ = Step::buffered;  // as below
    if (errno_value == EAGAIN) note_missed();
    return true;
  }
  if (step_ == Step::try_cache && errno_value != EINTR) {
    // EAGAIN: not in the cache. Any other error: this file system does not know the flag.
    step_ = errno_value == EAGAIN ? Step::direct : Step::buffered;
    return true;
  }
  if (errno_value == EINVAL && operation_.fd == target_.direct_fd) {
    step_ = Step::buffered;  // announced alignment and practice differ (stacked file systems)
    return true;
  }
  if ((errno_value == EINTR || errno_value == EAGAIN) && ++retries_ < max_retries) return true;
  error_ = errno_value;
  return false;
}

void Transfer::advance(std::int64_t bytes) noexcept {
  moved_ += bytes;
  skip_ += static_cast<std::size_t>(bytes);
  while (entry_ < list_.size() && skip_ >= list_[entry_].iov_len) skip_ -= list_[entry_++].iov_len;
}

/// Lists the next `limit` bytes, or as many as one operation may list; returns the number of entries.
unsigned Transfer::fill_window(std::int64_t& limit) noexcept {
  if (list_.size() == 1) {
    window_single_ = {static_cast<std::byte*>(single_.iov_base) + skip_, static_cast<std::size_t>(limit)};
    return 1;
  }
  auto left = static_cast<std::size_t>(limit);
  std::size_t skip = skip_;
  unsigned count = 0;
  for (std::size_t i = entry_; left > 0 && count < window_.size(); ++i, skip = 0) {
    const std::size_t part = std::min(left, list_[i].iov_len - skip);
    if (part > 0) window_[count++] = {static_cast<std::byte*>(list_[i].iov_base) + skip, part};
    left -= part;
  }
  limit -= static_cast<std::int64_t>(left);
  return count;
}

/// Whether the next `limit` bytes may be moved directly: every part but the last aligned in address and size.
bool Transfer::memory_suits(std::int64_t limit) const noexcept {
  auto left = static_cast<std::size_t>(limit);
  std::size_t skip = skip_;
  for (std::size_t i = entry_; left > 0; ++i, skip = 0) {
    const std::size_t part = std::min(left, list_[i].iov_len - skip);
    if (part == 0) continue;
    const auto address = reinterpret_cast<std::uintptr_t>(list_[i].iov_base) + skip;
    if (!multiple(address, target_.memory_align) || !multiple(part, target_.offset_align)) return false;
    left -= part;
  }
  return true;
}

void Transfer::copy_bounced(std::int64_t bytes, bool to_user) noexcept {
  auto left = static_cast<std::size_t>(bytes);
  std::size_t skip = skip_;
  std::byte* buffer = bounce_.data() + bounce_skip_;
  for (std::size_t i = entry_; left > 0; ++i, skip = 0) {
    const std::size_t part = std::min(left, list_[i].iov_len - skip);
    std::byte* user = static_cast<std::byte*>(list_[i].iov_base) + skip;
    if (part > 0) std::memcpy(to_user ? user : buffer, to_user ? buffer : user, part);
    buffer += part;
    left -= part;
  }
}

}  // namespace outcore::device
