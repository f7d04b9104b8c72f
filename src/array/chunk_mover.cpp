#include "array/chunk_mover.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <optional>

#include "base/stream_copy.hpp"
#include "outcore/extend/engine.hpp"

namespace outcore::array {
namespace {

constexpr std::int64_t max_buffer_bytes = 1 << 20;  // 8 chunks of the usual size
constexpr std::int64_t depth_of_disk = 10;  // buffers under way that keep a disk busy; more make it slower
constexpr std::int64_t min_depth = 2;       // of a process
constexpr std::int64_t share_of_budget = 12, share_for_three = 24;

}  // namespace

ChunkMover::BufferCounts::BufferCounts(std::int64_t slot_bytes, std::int64_t budget_bytes,
                                       int processes) noexcept {
  const std::int64_t most = std::max((depth_of_disk + processes - 1) / processes, min_depth);
  const std::int64_t bytes = std::min(budget_bytes / share_of_budget / (2 * most), max_buffer_bytes);
  depth = std::clamp<std::int64_t>(most * bytes / slot_bytes, 1, most);
  slots = std::max<std::int64_t>(bytes / slot_bytes, 1);
  const std::int64_t third_batch_bytes = 3 * depth * slots * slot_bytes;
  batches = third_batch_bytes <= budget_bytes / share_for_three ? 3 : 2;
}

ChunkMover::ChunkMover(const dio::ChunkGrid& grid, std::span<const dio::OwnedComponent> components,
                       std::int64_t budget_bytes, int processes)
    : grid_(grid),
      components_(components),
      slot_bytes_(components.empty() ? grid.chunk_bytes()
                                     : components.front().file->geometry().stride_bytes()),
      chunk_stride_bytes_(row_major(grid.chunk(), grid.element_bytes())) {
  if (components.empty()) return;
  const BufferCounts all(slot_bytes_, budget_bytes, processes);
  depth_ = all.depth;
  slots_of_buffer_ = all.slots;
  buffers_.resize(static_cast<std::size_t>(all.count()));
  memory_ = device::Buffer(static_cast<std::size_t>(all.count() * all.slots * slot_bytes_));
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    buffers_[i].memory = memory_.data() + static_cast<std::int64_t>(i) * slots_of_buffer_ * slot_bytes_;
}

ChunkMover::~ChunkMover() {
  drop();
}

std::int64_t ChunkMover::memory_bytes(std::int64_t slot_bytes, bool staged, std::int64_t budget_bytes,
                                      int processes) noexcept {
  const BufferCounts all(slot_bytes, budget_bytes, processes);
  return (staged ? 2 : 1) * all.count() * all.slots * slot_bytes;
}

bool ChunkMover::ChunkBuffer::done() const noexcept {
  return std::ranges::all_of(requests, [](const Request& each) { return each.done(); });
}

/// Waits for all requests, then throws the first error.
void ChunkMover::ChunkBuffer::wait() {
  complete(requests);
}

void ChunkMover::finish() {
  std::exception_ptr first;
  for (ChunkBuffer& buffer : buffers_) {
    try {
      buffer.wait();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
    buffer.ranges.clear();
    buffer.slots = 0;
  }
  reading_ = 0;
  ahead_.clear();
  if (first) std::rethrow_exception(first);
}

/// The least recently used buffer, after its request is complete.
ChunkMover::ChunkBuffer& ChunkMover::next_buffer() {
  ChunkBuffer& buffer = buffers_[next_];
  next_ = (next_ + 1) % buffers_.size();
  buffer.wait();
  buffer.ranges.clear();
  buffer.slots = 0;
  return buffer;
}

/// Visits ranges of slots of all components in the box, as many as fit into a buffer at a time, until `visit`
/// returns false.
template <class Visit>
void ChunkMover::for_each_batch(const Box& box, Visit visit) {
  std::vector<OwnedSlots> batch;
  std::int64_t slots = 0;
  bool wanted = true;
  const auto hand_over = [&] {
    if (batch.empty()) return;
    wanted = visit(batch, slots);
    batch.clear();
    slots = 0;
  };
  for (const dio::OwnedComponent& component : components_)
    grid_.for_each_slot_range(component.index, box, [&](const store::SlotRange& range) {
      std::int64_t first = range.first_slot, left = range.count;
      while (left > 0 && wanted) {
        const std::int64_t count = std::min(left, slots_of_buffer_ - slots);
        batch.push_back({{first, count}, &component});
        slots += count;
        first += count;
        left -= count;
        if (slots == slots_of_buffer_) hand_over();
      }
    });
  if (wanted) hand_over();
}

/// Visits (component, slot, box of the chunk, its memory).
template <class Visit>
void ChunkMover::for_each_chunk(const ChunkBuffer& buffer, Visit visit) const {
  std::byte* memory = buffer.memory;
  for (const OwnedSlots& range : buffer.ranges)
    for (std::int64_t slot = range.first_slot; slot < range.first_slot + range.count; ++slot) {
      visit(*range.component, slot, grid_.chunk_box(grid_.chunk_at(range.component->index, slot)), memory);
      memory += slot_bytes_;
    }
}

void ChunkMover::reserve(const Box& box) {
  for (const dio::OwnedComponent& component : components_)
    grid_.for_each_slot_range(component.index, box, [&](const store::SlotRange& range) {
      component.file->reserve(range.first_slot, range.count);
    });
}

void ChunkMover::write(const Box& box, const Counterpart& from) {
  std::deque<ChunkBuffer*> filled;
  const auto begin_writes = [&] {
    for (; !filled.empty() && !busy(); filled.pop_front()) begin_write(*filled.front());
  };
  const auto reduce_filled = [&](std::size_t most) {
    for (begin_writes(); filled.size() > most; begin_writes()) wait_for_one();
  };
  ChunkBuffer* before = nullptr;  // one buffer later, so that the chunks that it must read first have arrived
  const auto fill_before = [&] {
    if (!before) return;
    fill(*before, box, from);
    filled.push_back(before);
  };
  for_each_batch(box, [&](const std::vector<OwnedSlots>& ranges, std::int64_t slots) {
    reduce_filled(buffers_.size() - static_cast<std::size_t>(depth_) - 1);
    ChunkBuffer& buffer = next_buffer();
    begin_writes();  // somebody may have waited for it, and so have ended others, too
    buffer.ranges = ranges;
    buffer.slots = slots;
    read_old(buffer, box);
    fill_before();
    before = &buffer;
    return true;
  });
  fill_before();
  reduce_filled(0);
}

/// Begins to read the chunks that the box covers in part; chunks never written are zeros.
void ChunkMover::read_old(ChunkBuffer& buffer, const Box& box) {
  const auto slot_span = static_cast<std::size_t>(slot_bytes_);
  for_each_chunk(
      buffer, [&](const dio::OwnedComponent& owner, std::int64_t slot, const Box& chunk, std::byte* memory) {
        const bool covered = box.contains(chunk);
        if (covered && chunk.shape() == grid_.chunk()) return;
        if (!covered) wait_for_write(owner, slot, buffer);  // after that the table has it
        if (!covered && owner.file->table().written(slot)) {
          buffer.requests.push_back(owner.file->read_async(slot, 1, std::span(memory, slot_span)));
        } else {
          std::memset(memory, 0, slot_span);
        }
      });
}

/// Another part of a chunk may still be on its way to the disk.
void ChunkMover::wait_for_write(const dio::OwnedComponent& component, std::int64_t slot,
                                const ChunkBuffer& reader) {
  for (ChunkBuffer& buffer : buffers_)
    if (&buffer != &reader)
      for (const OwnedSlots& range : buffer.ranges)
        if (range.component == &component && slot >= range.first_slot &&
            slot < range.first_slot + range.count)
          buffer.wait();
}

void ChunkMover::fill(ChunkBuffer& buffer, const Box& box, const Counterpart& from) {
  buffer.wait();
  for_each_chunk(buffer, [&](const dio::OwnedComponent&, std::int64_t, const Box& chunk, std::byte* memory) {
    const Box part = intersection(box, chunk);
    std::byte* first = memory;
    for (int i = 0; i < part.rank(); ++i) first += (part.begin[i] - chunk.begin[i]) * chunk_stride_bytes_[i];
    from.get(part, {first, chunk_stride_bytes_}, pending_);
  });
  complete(pending_);
}

void ChunkMover::begin_write(ChunkBuffer& buffer) {
  std::byte* memory = buffer.memory;
  for (const OwnedSlots& range : buffer.ranges) {
    const std::span slots(memory, static_cast<std::size_t>(range.count * slot_bytes_));
    note_former(range);
    buffer.requests.push_back(range.component->file->write_async(range.first_slot, range.count, slots));
    memory += slots.size();
  }
}

void ChunkMover::note_former(const OwnedSlots& range) {
  for (store::Component::Former& each : range.component->file->former(range.first_slot, range.count)) {
    if (!former_.empty()) {
      auto& [component, last] = former_.back();
      if (component == range.component && last.entries.empty() && each.entries.empty() &&
          last.first_slot + last.count == each.first_slot) {
        last.count += each.count;
        continue;
      }
    }
    former_.emplace_back(range.component, std::move(each));
  }
}

void ChunkMover::take_back(std::span<const Box> boxes) noexcept {
  drop();
  for (auto each = former_.rbegin(); each != former_.rend(); ++each)
    each->first->file->restore(std::span(&each->second, 1));
  former_.clear();
  for (const dio::OwnedComponent& component : components_)
    for (const Box& box : boxes)
      grid_.for_each_slot_range(component.index, box, [&](const store::SlotRange& range) {
        component.file->give_back(range.first_slot, range.count);
      });
}

bool ChunkMover::begin_reading(std::size_t before, const Box& box) {
  if (before == ahead_.size()) ahead_.push_back(0);
  std::size_t& begun = ahead_[before];
  std::size_t batch = 0;
  bool all = true;
  const device::Burst burst;
  for_each_batch(box, [&](const std::vector<OwnedSlots>& ranges, std::int64_t slots) {
    if (batch++ < begun) return true;
    all = can_read_more();
    if (!all) return false;
    start_reading(ranges, slots, box);
    ++begun;
    return true;
  });
  return all;
}

/// Whether the disk has as many requests as it should.
bool ChunkMover::busy() const noexcept {
  return std::ranges::count_if(buffers_, [](const ChunkBuffer& each) { return !each.done(); }) >= depth_;
}

bool ChunkMover::can_read_more() const noexcept {
  return reading_ < buffers_.size() && !busy();
}

/// Waits for the oldest read under way, if there is one.
void ChunkMover::wait_for_one() {
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    if (ChunkBuffer& buffer = buffers_[(next_ + i) % buffers_.size()]; !buffer.done()) return buffer.wait();
}

/// The next buffer that is read.
ChunkMover::ChunkBuffer& ChunkMover::oldest() noexcept {
  return buffers_[(next_ + buffers_.size() - reading_) % buffers_.size()];
}

void ChunkMover::read(const Box& box, std::span<const std::unique_ptr<Counterpart>> to,
                      const std::function<void()>& all_begun) {
  std::size_t mine = 0;
  if (!ahead_.empty()) {
    mine = ahead_.front();
    ahead_.pop_front();
  }
  const auto deliver_oldest = [&] {
    deliver(oldest(), box, to);
    --reading_;
    --mine;
  };
  try {
    std::size_t begun = mine;
    std::optional<device::Burst> burst;  // ends before anything is waited for
    for_each_batch(box, [&](const std::vector<OwnedSlots>& ranges, std::int64_t slots) {
      if (begun > 0) {
        --begun;
        return true;
      }
      if (!can_read_more()) burst.reset();
      while (!can_read_more()) {
        if (reading_ == buffers_.size() || oldest().done())
          deliver_oldest();
        else
          oldest().wait();  // the disk gets its next request before this one is delivered
      }
      if (!burst) burst.emplace();
      start_reading(ranges, slots, box);
      ++mine;
      return true;
    });
    burst.reset();
    while (mine > 0) {
      oldest().wait();
      if (all_begun) all_begun();
      deliver_oldest();
    }
  } catch (...) {
    drop();
    throw;
  }
}

/// Drops the reads under way.
void ChunkMover::drop() noexcept {
  try {
    finish();
  } catch (const std::exception&) {  // of a transfer that has failed already, or for which nobody waits
  }
}

/// Takes the next buffer; none if that throws.
void ChunkMover::start_reading(const std::vector<OwnedSlots>& ranges, std::int64_t slots, const Box& box) {
  ChunkBuffer& buffer = next_buffer();
  try {
    buffer.ranges = ranges;
    buffer.slots = slots;
    request(buffer, box);
  } catch (...) {
    next_ = (next_ + buffers_.size() - 1) % buffers_.size();
    try {
      buffer.wait();
    } catch (const std::exception&) {  // the first error counts
    }
    throw;
  }
  ++reading_;
}

/// Reads chunks that lie together, and are needed almost completely, in one request; of other chunks reads
/// only the blocks that are needed.
void ChunkMover::request(ChunkBuffer& buffer, const Box& box) {
  std::byte* memory = buffer.memory;
  for (const OwnedSlots& range : buffer.ranges) {
    const store::Component& file = *range.component->file;
    const std::span slots(memory, static_cast<std::size_t>(range.count * slot_bytes_));
    memory += slots.size();
    const auto part = [&](std::int64_t first, std::int64_t count) {
      return slots.subspan(static_cast<std::size_t>(first * slot_bytes_),
                           static_cast<std::size_t>(count * slot_bytes_));
    };
    std::int64_t whole = 0;  // the first of several that are read together
    const auto read_whole = [&](std::int64_t end) {
      if (end > whole)
        buffer.requests.push_back(
            file.read_async(range.first_slot + whole, end - whole, part(whole, end - whole)));
    };
    for (std::int64_t i = 0; i < range.count; ++i) {
      const std::int64_t slot = range.first_slot + i;
      const std::vector<Blocks> parts =
          touched(file.geometry(), box, grid_.chunk_box(grid_.chunk_at(range.component->index, slot)));
      if (parts.empty()) continue;
      read_whole(i);
      whole = i + 1;
      for (const Blocks& blocks : parts)
        buffer.requests.push_back(file.read_blocks_async(slot, blocks.first, blocks.count, part(i, 1)));
    }
    read_whole(range.count);
  }
}

/// The blocks of a chunk that the box touches, and gaps between them that cost less than another request;
/// none if the whole chunk is to be read.
std::vector<ChunkMover::Blocks> ChunkMover::touched(const store::Geometry& geometry, const Box& box,
                                                    const Box& chunk) const {
  const Box part = intersection(box, chunk);
  if (part.shape() == grid_.chunk() || geometry.codec.codec != store::Codec::none || geometry.blocks() == 1)
    return {};
  dio::ChunkOverlap overlap{.count = part.shape(), .stride_bytes = chunk_stride_bytes_};
  for (int k = 0; k < part.rank(); ++k)
    overlap.offset += (part.begin[k] - chunk.begin[k]) * chunk_stride_bytes_[k];
  const std::int64_t block_bytes = geometry.block_bytes, hole = store::worth_a_request_bytes / block_bytes;
  std::vector<Blocks> found;
  std::int64_t read = 0;
  overlap.for_each_row(grid_.element_bytes(), [&](std::int64_t from, std::int64_t to) {
    const std::int64_t first = from / block_bytes, end = (to - 1) / block_bytes + 1;
    if (found.empty() || first - (found.back().first + found.back().count) > hole)
      found.push_back({first, 0});
    found.back().count = end - found.back().first;
  });
  for (const Blocks& each : found) read += each.count;
  if ((geometry.blocks() - read) * block_bytes < store::worth_a_request_bytes) found.clear();
  return found;
}

void ChunkMover::deliver(ChunkBuffer& buffer, const Box& box,
                         std::span<const std::unique_ptr<Counterpart>> to) {
  buffer.wait();
  const StreamedCopies streams(box.shape().product() * static_cast<std::int64_t>(grid_.element_bytes()));
  for_each_chunk(buffer, [&](const dio::OwnedComponent&, std::int64_t, const Box& chunk, std::byte* memory) {
    const Box part = intersection(box, chunk);
    std::byte* first = memory;
    for (int i = 0; i < part.rank(); ++i) first += (part.begin[i] - chunk.begin[i]) * chunk_stride_bytes_[i];
    for (const std::unique_ptr<Counterpart>& each : to)
      each->put(part, {first, chunk_stride_bytes_}, pending_);
  });
  complete(pending_);
}

}  // namespace outcore::array
