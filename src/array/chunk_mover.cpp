#include "array/chunk_mover.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

namespace outcore::array {
namespace {

constexpr std::int64_t lane_bytes = 2 << 20;  // of which some keep a disk busy
constexpr std::int64_t most_lanes = 8;
constexpr std::int64_t least_lanes = 2;  // of chunks that are larger than that

std::int64_t lane_count(std::int64_t slot_bytes) noexcept {
  return std::clamp(most_lanes * lane_bytes / slot_bytes, least_lanes, most_lanes);
}

std::int64_t slots_of_lane(std::int64_t slot_bytes) noexcept {
  return std::max<std::int64_t>(lane_bytes / slot_bytes, 1);
}

}  // namespace

ChunkMover::ChunkMover(const ChunkGrid& grid, std::span<const OwnedComponent> components)
    : grid_(grid),
      components_(components),
      slot_bytes_(components.empty() ? grid.chunk_bytes()
                                     : components.front().file->geometry().stride_bytes()),
      lane_slots_(slots_of_lane(slot_bytes_)),
      chunk_stride_bytes_(row_major(grid.chunk(), grid.element_bytes())) {
  if (components.empty()) return;
  lanes_.resize(static_cast<std::size_t>(lane_count(slot_bytes_)));
  buffer_ = device::Buffer(static_cast<std::size_t>(memory_bytes(slot_bytes_)));
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    lanes_[i].memory = buffer_.data() + static_cast<std::int64_t>(i) * lane_slots_ * slot_bytes_;
}

ChunkMover::~ChunkMover() {
  try {
    finish();
  } catch (const std::exception&) {  // of a transfer that has failed already
  }
}

std::int64_t ChunkMover::memory_bytes(std::int64_t slot_bytes) noexcept {
  return lane_count(slot_bytes) * slots_of_lane(slot_bytes) * slot_bytes;
}

/// Waits for all requests, then throws the first error.
void ChunkMover::Lane::wait() {
  std::exception_ptr first;
  for (store::Component::Request& each : requests) {
    try {
      each.wait();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  requests.clear();
  if (first) std::rethrow_exception(first);
}

void ChunkMover::finish() {
  std::exception_ptr first;
  for (Lane& lane : lanes_) {
    try {
      lane.wait();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
    lane.runs.clear();
    lane.slots = 0;
  }
  if (first) std::rethrow_exception(first);
}

/// The lane that was used longest ago; what it did is complete.
ChunkMover::Lane& ChunkMover::next_lane() {
  Lane& lane = lanes_[next_];
  next_ = (next_ + 1) % lanes_.size();
  lane.wait();
  lane.runs.clear();
  lane.slots = 0;
  return lane;
}

/// Visits runs of all components in the box, as many as fit into a lane at a time.
template <class Visit>
void ChunkMover::for_each_batch(const Box& box, Visit visit) {
  std::vector<Run> batch;
  std::int64_t slots = 0;
  const auto hand_over = [&] {
    if (batch.empty()) return;
    visit(batch, slots);
    batch.clear();
    slots = 0;
  };
  for (const OwnedComponent& component : components_)
    grid_.for_each_run(component.index, box, lane_slots_, [&](const ChunkGrid::Run& run) {
      std::int64_t first = run.first_slot, left = run.count;
      while (left > 0) {
        const std::int64_t count = std::min(left, lane_slots_ - slots);
        batch.push_back({&component, first, count});
        slots += count;
        first += count;
        left -= count;
        if (slots == lane_slots_) hand_over();
      }
    });
  hand_over();
}

/// Visits (component, slot, box of the chunk, its memory).
template <class Visit>
void ChunkMover::for_each_chunk(const Lane& lane, Visit visit) const {
  std::byte* memory = lane.memory;
  for (const Run& run : lane.runs)
    for (std::int64_t slot = run.first_slot; slot < run.first_slot + run.count; ++slot) {
      visit(*run.component, slot, grid_.chunk_box(grid_.chunk_at(run.component->index, slot)), memory);
      memory += slot_bytes_;
    }
}

void ChunkMover::write(const Box& box, const Counterpart& from) {
  Lane* before = nullptr;  // one lane later, so that what it has to read first has arrived
  for_each_batch(box, [&](const std::vector<Run>& runs, std::int64_t slots) {
    Lane& lane = next_lane();
    lane.runs = runs;
    lane.slots = slots;
    read_old(lane, box);
    if (before) fill_and_write(*before, box, from);
    before = &lane;
  });
  if (before) fill_and_write(*before, box, from);
}

/// Begins to read the chunks that the box covers in part; those never written are zeros.
void ChunkMover::read_old(Lane& lane, const Box& box) {
  const auto slot_span = static_cast<std::size_t>(slot_bytes_);
  for_each_chunk(lane,
                 [&](const OwnedComponent& owner, std::int64_t slot, const Box& chunk, std::byte* memory) {
                   const bool covered = box.contains(chunk);
                   if (covered && chunk.shape() == grid_.chunk()) return;
                   if (!covered) wait_for_write(owner, slot, lane);  // then the table knows of it
                   if (!covered && owner.file->table().written(slot)) {
                     lane.requests.push_back(owner.file->async_read(slot, 1, std::span(memory, slot_span)));
                   } else {
                     std::memset(memory, 0, slot_span);
                   }
                 });
}

/// Another part of a chunk may still be on its way to the disk.
void ChunkMover::wait_for_write(const OwnedComponent& component, std::int64_t slot, const Lane& reader) {
  for (Lane& lane : lanes_)
    if (&lane != &reader)
      for (const Run& run : lane.runs)
        if (run.component == &component && slot >= run.first_slot && slot < run.first_slot + run.count)
          lane.wait();
}

void ChunkMover::fill_and_write(Lane& lane, const Box& box, const Counterpart& from) {
  lane.wait();
  for_each_chunk(lane, [&](const OwnedComponent&, std::int64_t, const Box& chunk, std::byte* memory) {
    const Box part = intersection(box, chunk);
    std::byte* first = memory;
    for (int i = 0; i < part.rank(); ++i) first += (part.begin[i] - chunk.begin[i]) * chunk_stride_bytes_[i];
    from.get(part, {first, chunk_stride_bytes_}, pending_);
  });
  pending_.wait();
  std::byte* memory = lane.memory;
  for (const Run& run : lane.runs) {
    const std::span slots(memory, static_cast<std::size_t>(run.count * slot_bytes_));
    lane.requests.push_back(run.component->file->async_write(run.first_slot, run.count, slots));
    memory += slots.size();
  }
}

void ChunkMover::read(const Box& box, std::span<const std::unique_ptr<Counterpart>> to) {
  std::size_t under_way = 0;  // lanes, of which the oldest is the next to be used again
  const auto oldest = [&]() -> Lane& { return lanes_[(next_ + lanes_.size() - under_way) % lanes_.size()]; };
  for_each_batch(box, [&](const std::vector<Run>& runs, std::int64_t slots) {
    if (under_way == lanes_.size()) {
      deliver(oldest(), box, to);
      --under_way;
    }
    Lane& lane = next_lane();
    lane.runs = runs;
    lane.slots = slots;
    start_reading(lane, box);
    ++under_way;
  });
  for (; under_way > 0; --under_way) deliver(oldest(), box, to);
}

void ChunkMover::start_reading(Lane& lane, const Box& box) {
  std::byte* memory = lane.memory;
  for (const Run& run : lane.runs) {
    const store::Component& file = *run.component->file;
    const std::span slots(memory, static_cast<std::size_t>(run.count * slot_bytes_));
    memory += slots.size();
    if (file.geometry().blocks() == 1 || file.geometry().codec.codec != store::Codec::none) {
      lane.requests.push_back(file.async_read(run.first_slot, run.count, slots));
      continue;
    }
    for (std::int64_t i = 0; i < run.count; ++i) {  // of large chunks no more than what lies in between
      const Box chunk = grid_.chunk_box(grid_.chunk_at(run.component->index, run.first_slot + i));
      const Box part = intersection(box, chunk);
      std::int64_t begin = 0, end = static_cast<std::int64_t>(grid_.element_bytes());
      for (int k = 0; k < part.rank(); ++k) {
        begin += (part.begin[k] - chunk.begin[k]) * chunk_stride_bytes_[k];
        end += (part.end[k] - 1 - chunk.begin[k]) * chunk_stride_bytes_[k];
      }
      const auto size = static_cast<std::size_t>(end - begin);
      const auto first = static_cast<std::size_t>(i * slot_bytes_ + begin);
      lane.requests.push_back(file.async_read_part(run.first_slot + i, begin, slots.subspan(first, size)));
    }
  }
}

void ChunkMover::deliver(Lane& lane, const Box& box, std::span<const std::unique_ptr<Counterpart>> to) {
  lane.wait();
  for_each_chunk(lane, [&](const OwnedComponent&, std::int64_t, const Box& chunk, std::byte* memory) {
    const Box part = intersection(box, chunk);
    std::byte* first = memory;
    for (int i = 0; i < part.rank(); ++i) first += (part.begin[i] - chunk.begin[i]) * chunk_stride_bytes_[i];
    for (const std::unique_ptr<Counterpart>& each : to)
      each->put(part, {first, chunk_stride_bytes_}, pending_);
  });
  pending_.wait();
}

}  // namespace outcore::array
