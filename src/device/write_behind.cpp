#include "device/write_behind.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "outcore/error.hpp"
#include "outcore/trace.hpp"

namespace outcore::device {
namespace {

/// Size of blocks that stay in the cache of a core, beside the data of its thread.
constexpr std::size_t copied_bytes = 256 << 10;
constexpr std::uint64_t slow_copy_ns = 2'000'000;
constexpr unsigned blocks_after_slow_copy = 64;

}  // namespace

WriteBehind::WriteBehind(File& file, std::size_t block_bytes, unsigned blocks)
    : file_(file), block_bytes_(block_bytes), blocks_(blocks) {}

std::int64_t WriteBehind::end() const noexcept {
  std::int64_t last = filling_ ? filling_->end() : 0;
  for (const Block& block : blocks_)
    if (block.under_way) last = std::max(last, block.end());
  return last;
}

void WriteBehind::start(std::int64_t offset) {
  if (filling_) send(*std::exchange(filling_, nullptr));
  Block& block = free_block();
  block.offset = offset;
  block.used = 0;
  block.copied = not_copied_ == 0 && file_.write_is_copy(offset, block_bytes_);
  if (not_copied_ > 0) --not_copied_;
  const std::size_t size = block.copied ? std::min(copied_bytes, block_bytes_) : block_bytes_;
  // The first block ends where others begin: at a multiple of the block size, which suits direct I/O.
  block.limit = size - static_cast<std::size_t>(offset) % size;
  filling_ = &block;
}

bool WriteBehind::take(std::span<const std::byte> data, std::int64_t offset) {
  if (!gathers(offset, static_cast<std::int64_t>(data.size()))) return false;
  if (offset == filling_->end())
    append(data);
  else
    std::memcpy(filling_->memory + (offset - filling_->offset), data.data(), data.size());
  return true;
}

bool WriteBehind::take_held(std::span<const std::byte> data, std::int64_t offset) noexcept {
  if (!filling_ || offset != filling_->end() || data.size() > filling_->limit - filling_->used) return false;
  if (under_way_ > 0)
    for (const Block& block : blocks_)
      if (block.under_way && block.request.done()) return false;
  std::memcpy(filling_->memory + filling_->used, data.data(), data.size());
  filling_->used += data.size();
  return true;
}

void WriteBehind::append(std::span<const std::byte> data) {
  while (!data.empty()) {
    if (filling_->used == filling_->limit) start(filling_->end());
    const std::size_t part = std::min(data.size(), filling_->limit - filling_->used);
    std::memcpy(filling_->memory + filling_->used, data.data(), part);
    filling_->used += part;
    data = data.subspan(part);
  }
}

bool WriteBehind::fetch(std::span<std::byte> buffer, std::int64_t offset) const {
  const std::int64_t end = offset + static_cast<std::int64_t>(buffer.size());
  const Block* holder = nullptr;
  for (const Block& block :
       blocks_)  // blocks under way never meet one another; the one being filled is newer
    if ((block.under_way && !holder) || &block == filling_)
      if (block.meets(offset, end)) holder = &block;
  if (!holder || offset < holder->offset || end > holder->end()) return false;
  std::memcpy(buffer.data(), holder->memory + (offset - holder->offset), buffer.size());
  return true;
}

void WriteBehind::settle(std::int64_t offset, std::int64_t size_bytes) {
  const std::int64_t end = offset + size_bytes;
  if (filling_ && filling_->meets(offset, end)) send(*std::exchange(filling_, nullptr));
  for (Block& block : blocks_)
    if (block.under_way && block.meets(offset, end)) finish(block);
}

void WriteBehind::drain() {
  std::exception_ptr first;
  const auto attempt = [&first](auto&& action) {
    try {
      action();
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  };
  if (filling_) attempt([this] { send(*std::exchange(filling_, nullptr)); });
  for (Block& block : blocks_) {
    if (block.under_way) attempt([&] { finish(block); });
  }
  memory_ = Buffer();
  if (first) std::rethrow_exception(first);
}

void WriteBehind::check() {
  if (under_way_ == 0) return;
  for (Block& block : blocks_)
    if (block.under_way && block.request.done()) finish(block);
}

void WriteBehind::send(Block& block) {
  if (block.used == 0) return;
  std::exception_ptr earlier;     // must not prevent the write of this block
  for (Block& other : blocks_) {  // two writes of the same bytes must not overtake one another
    if (!other.under_way || !other.meets(block.offset, block.end())) continue;
    try {
      finish(other);
    } catch (const Error&) {
      earlier = std::current_exception();
    }
  }
  if (block.copied) {
    copy(block);
  } else {
    block.request = file_.write_async(std::span(block.memory, block.used), block.offset);
    block.under_way = true;
    ++under_way_;
  }
  if (earlier) std::rethrow_exception(earlier);
}

void WriteBehind::copy(Block& block) {
  next_ = static_cast<std::size_t>(&block - blocks_.data());  // its memory is in the cache
  const std::uint64_t start_ns = trace::now_ns();
  file_.write(std::span(block.memory, block.used), block.offset);
  if (trace::now_ns() - start_ns > slow_copy_ns) not_copied_ = blocks_after_slow_copy;
}

void WriteBehind::finish(Block& block) {
  block.under_way = false;
  --under_way_;
  std::exchange(block.request, {}).wait();
}

WriteBehind::Block& WriteBehind::free_block() {
  Block& block = blocks_[next_];
  next_ = (next_ + 1) % blocks_.size();
  if (block.under_way) finish(block);
  if (memory_.size() == 0) {
    memory_ = Buffer(block_bytes_ * blocks_.size());
    for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].memory = memory_.data() + i * block_bytes_;
  }
  return block;
}

}  // namespace outcore::device
