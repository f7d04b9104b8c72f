#include "device/read_ahead.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "outcore/error.hpp"

namespace outcore::device {
namespace {

constexpr std::size_t first_bytes = 64 << 10;
/// Size of blocks that stay in the cache of a core, beside the data of its thread.
constexpr std::size_t copied_bytes = 512 << 10;
constexpr std::int64_t align_bytes = 4096;
/// The offset in a block at which bytes from the page cache begin. The kernel copies by string instructions,
/// from the begin of a page. They are slower by a tenth if the target is the begin of a cache line (Intel),
/// and by half or more if its offset within a page is a few bytes above that of the source (AMD: the last
/// written bytes seem to alias the next bytes read). This offset avoids both. Measured: [M6].
constexpr std::size_t off_page_bytes = 2048 + 16;

}  // namespace

ReadAhead::ReadAhead(File& file, std::size_t block_bytes, unsigned blocks,
                     std::function<bool(std::int64_t, std::int64_t)> before)
    : file_(file), block_bytes_(block_bytes), before_(std::move(before)), blocks_(blocks) {}

void ReadAhead::start(std::int64_t offset, std::size_t request_bytes) {
  count_ = 0;
  consumed_ = 0;
  ended_ = false;
  next_offset_ = offset - offset % align_bytes;
  next_bytes_ = std::min(std::max(first_bytes, std::bit_ceil(request_bytes)), block_bytes_);
  read_on();
}

/// Reads ahead as far as it pays: at most twice as far as the caller has come, and up to bytes that the page
/// cache holds.
void ReadAhead::read_on() {
  if (count_ == 0 && !ended_ && take_resident()) return;
  while (count_ < blocks_.size() && !ended_) {
    const auto ahead = count_ == 0 ? 0 : static_cast<std::size_t>(next_offset_ - block(0).offset);
    if (ahead > 2 * std::max(consumed_, next_bytes_)) return;
    if (count_ > 0 && file_.resident(next_offset_, static_cast<std::int64_t>(next_bytes_))) return;
    if (!before_(next_offset_, static_cast<std::int64_t>(next_bytes_))) return;
    Block& next = next_block();
    next.asked = next_bytes_;
    next.request = file_.read_async(std::span(next.memory, next.asked), next.offset);
    next.under_way = true;
    ++count_;
    next_offset_ = next.end();
    next_bytes_ = std::min(next_bytes_ * 2, block_bytes_);
  }
}

/// Bytes that the page cache holds need no read-ahead: a block is copied from there when it is needed. A
/// second thread that copied the next block meanwhile would compete with the caller for memory bandwidth.
bool ReadAhead::take_resident() {
  head_ = 0;  // always the same memory
  Block& next = next_block();
  const std::size_t most = std::min({next_bytes_, copied_bytes, block_bytes_ / 2});
  if (!before_(next_offset_, static_cast<std::int64_t>(most))) return true;
  try {
    const std::int64_t left = file_.length() - next_offset_;
    ended_ = left <= 0;
    if (ended_) return true;
    const std::int64_t size = std::min(left, static_cast<std::int64_t>(most));
    next.asked = next.valid = static_cast<std::size_t>(size);
    next.memory += off_page_bytes;
    const std::span memory(next.memory, next.asked);
    if (!file_.resident(next.offset, size) || file_.read(memory, next.offset) != size) return false;
  } catch (const Error&) {
    return false;  // a caller that needs these bytes reads the file and gets the error
  }
  ++count_;
  next_offset_ = next.end();
  next_bytes_ = std::min(next_bytes_ * 2, block_bytes_);
  return true;
}

/// The block after those in use, empty.
ReadAhead::Block& ReadAhead::next_block() {
  Block& next = block(count_);
  settle(next);  // of a run that was dropped, maybe
  if (memory_.size() == 0) memory_ = Buffer(block_bytes_ * blocks_.size());
  next.memory = memory_.data() + static_cast<std::size_t>(&next - blocks_.data()) * block_bytes_;
  next.offset = next_offset_;
  next.asked = next.valid = 0;
  return next;
}

std::size_t ReadAhead::fetch(std::span<std::byte> buffer, std::int64_t offset) {
  std::size_t done = 0;
  while (done < buffer.size() && count_ > 0) {
    const std::int64_t at = offset + static_cast<std::int64_t>(done);
    Block& head = block(0);
    if (at < head.offset) break;
    if (at >= head.end()) {
      // Only to the next block: an access further on is unrelated and happens to fall into the range.
      if (at >= (count_ < 2 ? head.end() + 1 : block(1).end())) break;
      retire_head();
      continue;
    }
    if (!settle_in_run(head)) break;
    const auto skip = static_cast<std::size_t>(at - head.offset);
    if (skip >= head.valid) break;
    const std::size_t part = std::min(buffer.size() - done, head.valid - skip);
    std::memcpy(buffer.data() + done, head.memory + skip, part);
    done += part;
  }
  return done;
}

bool ReadAhead::fetch_held(std::span<std::byte> buffer, std::int64_t offset) noexcept {
  if (count_ == 0) return false;
  const Block& head = block(0);
  const std::int64_t skip = offset - head.offset;
  if (head.under_way || skip < 0 ||
      skip + static_cast<std::int64_t>(buffer.size()) > static_cast<std::int64_t>(head.valid))
    return false;
  std::memcpy(buffer.data(), head.memory + skip, buffer.size());
  return true;
}

void ReadAhead::retire_head() {
  consumed_ += block(0).asked;
  head_ = (head_ + 1) % blocks_.size();
  --count_;
  read_on();
}

/// Waits for a block. False if it could not be read: a caller that needs its bytes reads the file and gets
/// the error.
bool ReadAhead::settle(Block& block) {
  if (!block.under_way) return true;
  block.under_way = false;
  try {
    block.valid = static_cast<std::size_t>(std::exchange(block.request, {}).wait());
    return true;
  } catch (const Error&) {
    block.valid = 0;
    return false;
  }
}

/// As settle, for a block of the present run; a short or failed block ends the run.
bool ReadAhead::settle_in_run(Block& block) {
  if (!settle(block)) count_ = 0;
  if (block.valid < block.asked) ended_ = true;
  return count_ > 0;
}

bool ReadAhead::meets(std::int64_t from, std::int64_t to) noexcept {
  return count_ > 0 && from < next_offset_ && to > block(0).offset;
}

void ReadAhead::update(std::span<const std::byte> data, std::int64_t offset) {
  const std::int64_t end = offset + static_cast<std::int64_t>(data.size());
  if (!meets(offset, end)) return;
  for (std::size_t i = 0; i < count_; ++i) {
    Block& held = block(i);
    if (offset >= held.end() || end <= held.offset) continue;
    if (!settle_in_run(held)) return;
    const std::int64_t from = std::max(offset, held.offset);
    const std::int64_t to = std::min(end, held.offset + static_cast<std::int64_t>(held.valid));
    if (from >= to) continue;  // beyond the end of the file as it was
    std::memcpy(held.memory + (from - held.offset), data.data() + (from - offset),
                static_cast<std::size_t>(to - from));
  }
}

void ReadAhead::forget(std::int64_t offset, std::int64_t size_bytes) {
  if (meets(offset, offset + size_bytes)) count_ = 0;
}

void ReadAhead::clear() {
  count_ = 0;
  for (Block& block : blocks_) settle(block);
  memory_ = Buffer();
}

}  // namespace outcore::device
