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

constexpr std::int64_t max_lane_bytes = 1 << 20;  // 8 chunks of the usual size
constexpr std::int64_t depth_of_disk = 10;        // lanes under way keep it busy; it gets slower with more
constexpr std::int64_t min_depth = 2;             // of a process
constexpr std::int64_t share_of_budget = 12, share_for_three = 24;

}  // namespace

ChunkMover::Lanes::Lanes(std::int64_t slot_bytes, std::int64_t budget_bytes, int processes) noexcept {
  const std::int64_t most = std::max((depth_of_disk + processes - 1) / processes, min_depth);
  const std::int64_t bytes = std::min(budget_bytes / share_of_budget / (2 * most), max_lane_bytes);
  depth = std::clamp<std::int64_t>(most * bytes / slot_bytes, 1, most);
  slots = std::max<std::int64_t>(bytes / slot_bytes, 1);
  const std::int64_t third_batch_bytes = 3 * depth * slots * slot_bytes;
  batches = third_batch_bytes <= budget_bytes / share_for_three ? 3 : 2;
}

ChunkMover::ChunkMover(const ChunkGrid& grid, std::span<const OwnedComponent> components,
                       std::int64_t budget_bytes, int processes)
    : grid_(grid),
      components_(components),
      slot_bytes_(components.empty() ? grid.chunk_bytes()
                                     : components.front().file->geometry().stride_bytes()),
      chunk_stride_bytes_(row_major(grid.chunk(), grid.element_bytes())) {
  if (components.empty()) return;
  const Lanes all(slot_bytes_, budget_bytes, processes);
  depth_ = all.depth;
  lane_slots_ = all.slots;
  lanes_.resize(static_cast<std::size_t>(all.count()));
  buffer_ = device::Buffer(static_cast<std::size_t>(all.count() * all.slots * slot_bytes_));
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    lanes_[i].memory = buffer_.data() + static_cast<std::int64_t>(i) * lane_slots_ * slot_bytes_;
}

ChunkMover::~ChunkMover() {
  drop();
}

std::int64_t ChunkMover::memory_bytes(std::int64_t slot_bytes, bool staged, std::int64_t budget_bytes,
                                      int processes) noexcept {
  const Lanes all(slot_bytes, budget_bytes, processes);
  return (staged ? 2 : 1) * all.count() * all.slots * slot_bytes;
}

bool ChunkMover::Lane::done() const noexcept {
  return std::ranges::all_of(requests, [](const Request& each) { return each.done(); });
}

/// Waits for all requests, then throws the first error.
void ChunkMover::Lane::wait() {
  complete(requests);
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
  reading_ = 0;
  ahead_.clear();
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

/// Visits runs of all components in the box, as many as fit into a lane at a time, until `visit` returns
/// false.
template <class Visit>
void ChunkMover::for_each_batch(const Box& box, Visit visit) {
  std::vector<Run> batch;
  std::int64_t slots = 0;
  bool wanted = true;
  const auto hand_over = [&] {
    if (batch.empty()) return;
    wanted = visit(batch, slots);
    batch.clear();
    slots = 0;
  };
  for (const OwnedComponent& component : components_)
    grid_.for_each_run(component.index, box, [&](const ChunkGrid::Run& run) {
      std::int64_t first = run.first_slot, left = run.count;
      while (left > 0 && wanted) {
        const std::int64_t count = std::min(left, lane_slots_ - slots);
        batch.push_back({&component, first, count});
        slots += count;
        first += count;
        left -= count;
        if (slots == lane_slots_) hand_over();
      }
    });
  if (wanted) hand_over();
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

void ChunkMover::reserve(const Box& box) {
  for (const OwnedComponent& component : components_)
    grid_.for_each_run(component.index, box, [&](const ChunkGrid::Run& run) {
      component.file->reserve(run.first_slot, run.count);
    });
}

void ChunkMover::write(const Box& box, const Counterpart& from) {
  std::deque<Lane*> filled;
  const auto begin_writes = [&] {
    for (; !filled.empty() && !busy(); filled.pop_front()) begin_write(*filled.front());
  };
  const auto reduce_filled = [&](std::size_t most) {
    for (begin_writes(); filled.size() > most; begin_writes()) wait_for_one();
  };
  Lane* before = nullptr;  // one lane later, so that what it has to read first has arrived
  const auto fill_before = [&] {
    if (!before) return;
    fill(*before, box, from);
    filled.push_back(before);
  };
  for_each_batch(box, [&](const std::vector<Run>& runs, std::int64_t slots) {
    reduce_filled(lanes_.size() - static_cast<std::size_t>(depth_) - 1);
    Lane& lane = next_lane();
    begin_writes();  // it may have been waited for, and others have ended with it
    lane.runs = runs;
    lane.slots = slots;
    read_old(lane, box);
    fill_before();
    before = &lane;
    return true;
  });
  fill_before();
  reduce_filled(0);
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
                     lane.requests.push_back(owner.file->read_async(slot, 1, std::span(memory, slot_span)));
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

void ChunkMover::fill(Lane& lane, const Box& box, const Counterpart& from) {
  lane.wait();
  for_each_chunk(lane, [&](const OwnedComponent&, std::int64_t, const Box& chunk, std::byte* memory) {
    const Box part = intersection(box, chunk);
    std::byte* first = memory;
    for (int i = 0; i < part.rank(); ++i) first += (part.begin[i] - chunk.begin[i]) * chunk_stride_bytes_[i];
    from.get(part, {first, chunk_stride_bytes_}, pending_);
  });
  complete(pending_);
}

void ChunkMover::begin_write(Lane& lane) {
  std::byte* memory = lane.memory;
  for (const Run& run : lane.runs) {
    const std::span slots(memory, static_cast<std::size_t>(run.count * slot_bytes_));
    note_former(run);
    lane.requests.push_back(run.component->file->write_async(run.first_slot, run.count, slots));
    memory += slots.size();
  }
}

void ChunkMover::note_former(const Run& run) {
  for (store::Component::Former& each : run.component->file->former(run.first_slot, run.count)) {
    if (!former_.empty()) {
      auto& [component, last] = former_.back();
      if (component == run.component && last.entries.empty() && each.entries.empty() &&
          last.first_slot + last.count == each.first_slot) {
        last.count += each.count;
        continue;
      }
    }
    former_.emplace_back(run.component, std::move(each));
  }
}

void ChunkMover::take_back(std::span<const Box> boxes) noexcept {
  drop();
  for (auto each = former_.rbegin(); each != former_.rend(); ++each)
    each->first->file->restore(std::span(&each->second, 1));
  former_.clear();
  for (const OwnedComponent& component : components_)
    for (const Box& box : boxes)
      grid_.for_each_run(component.index, box, [&](const ChunkGrid::Run& run) {
        component.file->give_back(run.first_slot, run.count);
      });
}

bool ChunkMover::begin_reading(std::size_t before, const Box& box) {
  if (before == ahead_.size()) ahead_.push_back(0);
  std::size_t& begun = ahead_[before];
  std::size_t batch = 0;
  bool all = true;
  const device::Burst burst;
  for_each_batch(box, [&](const std::vector<Run>& runs, std::int64_t slots) {
    if (batch++ < begun) return true;
    all = can_read_more();
    if (!all) return false;
    start_reading(runs, slots, box);
    ++begun;
    return true;
  });
  return all;
}

/// The disk has as much to do as is good for it.
bool ChunkMover::busy() const noexcept {
  return std::ranges::count_if(lanes_, [](const Lane& each) { return !each.done(); }) >= depth_;
}

bool ChunkMover::can_read_more() const noexcept {
  return reading_ < lanes_.size() && !busy();
}

/// Until the oldest that is under way is not, if there is one.
void ChunkMover::wait_for_one() {
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    if (Lane& lane = lanes_[(next_ + i) % lanes_.size()]; !lane.done()) return lane.wait();
}

/// Of those that are read.
ChunkMover::Lane& ChunkMover::oldest() noexcept {
  return lanes_[(next_ + lanes_.size() - reading_) % lanes_.size()];
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
    for_each_batch(box, [&](const std::vector<Run>& runs, std::int64_t slots) {
      if (begun > 0) {
        --begun;
        return true;
      }
      if (!can_read_more()) burst.reset();
      while (!can_read_more()) {
        if (reading_ == lanes_.size() || oldest().done())
          deliver_oldest();
        else
          oldest().wait();  // what takes its place on the disk is begun before it is delivered
      }
      if (!burst) burst.emplace();
      start_reading(runs, slots, box);
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

/// What is being read is not wanted any more.
void ChunkMover::drop() noexcept {
  try {
    finish();
  } catch (const std::exception&) {  // of a transfer that has failed already, or nobody waits for
  }
}

/// Takes the next lane, or, if it throws, none.
void ChunkMover::start_reading(const std::vector<Run>& runs, std::int64_t slots, const Box& box) {
  Lane& lane = next_lane();
  try {
    lane.runs = runs;
    lane.slots = slots;
    request(lane, box);
  } catch (...) {
    next_ = (next_ + lanes_.size() - 1) % lanes_.size();
    try {
      lane.wait();
    } catch (const std::exception&) {  // the first error counts
    }
    throw;
  }
  ++reading_;
}

/// Chunks that are wanted as good as whole, and lie together, in one piece; of others the blocks that are.
void ChunkMover::request(Lane& lane, const Box& box) {
  std::byte* memory = lane.memory;
  for (const Run& run : lane.runs) {
    const store::Component& file = *run.component->file;
    const std::span slots(memory, static_cast<std::size_t>(run.count * slot_bytes_));
    memory += slots.size();
    const auto part = [&](std::int64_t first, std::int64_t count) {
      return slots.subspan(static_cast<std::size_t>(first * slot_bytes_),
                           static_cast<std::size_t>(count * slot_bytes_));
    };
    std::int64_t whole = 0;  // the first that is read with those behind it
    const auto read_whole = [&](std::int64_t end) {
      if (end > whole)
        lane.requests.push_back(
            file.read_async(run.first_slot + whole, end - whole, part(whole, end - whole)));
    };
    for (std::int64_t i = 0; i < run.count; ++i) {
      const std::int64_t slot = run.first_slot + i;
      const std::vector<Blocks> parts =
          touched(file.geometry(), box, grid_.chunk_box(grid_.chunk_at(run.component->index, slot)));
      if (parts.empty()) continue;
      read_whole(i);
      whole = i + 1;
      for (const Blocks& blocks : parts)
        lane.requests.push_back(file.read_blocks_async(slot, blocks.first, blocks.count, part(i, 1)));
    }
    read_whole(run.count);
  }
}

/// The blocks of a chunk that the box touches, with holes between them that cost less than another request;
/// none if all of it is to be read.
std::vector<ChunkMover::Blocks> ChunkMover::touched(const store::Geometry& geometry, const Box& box,
                                                    const Box& chunk) const {
  const Box part = intersection(box, chunk);
  if (part.shape() == grid_.chunk() || geometry.codec.codec != store::Codec::none || geometry.blocks() == 1)
    return {};
  ChunkPiece piece{.count = part.shape(), .stride_bytes = chunk_stride_bytes_};
  for (int k = 0; k < part.rank(); ++k)
    piece.offset += (part.begin[k] - chunk.begin[k]) * chunk_stride_bytes_[k];
  const std::int64_t block_bytes = geometry.block_bytes, hole = store::worth_a_request_bytes / block_bytes;
  std::vector<Blocks> found;
  std::int64_t read = 0;
  piece.for_each_row(grid_.element_bytes(), [&](std::int64_t from, std::int64_t to) {
    const std::int64_t first = from / block_bytes, end = (to - 1) / block_bytes + 1;
    if (found.empty() || first - (found.back().first + found.back().count) > hole)
      found.push_back({first, 0});
    found.back().count = end - found.back().first;
  });
  for (const Blocks& each : found) read += each.count;
  if ((geometry.blocks() - read) * block_bytes < store::worth_a_request_bytes) found.clear();
  return found;
}

void ChunkMover::deliver(Lane& lane, const Box& box, std::span<const std::unique_ptr<Counterpart>> to) {
  lane.wait();
  const StreamedCopies streams(box.shape().product() * static_cast<std::int64_t>(grid_.element_bytes()));
  for_each_chunk(lane, [&](const OwnedComponent&, std::int64_t, const Box& chunk, std::byte* memory) {
    const Box part = intersection(box, chunk);
    std::byte* first = memory;
    for (int i = 0; i < part.rank(); ++i) first += (part.begin[i] - chunk.begin[i]) * chunk_stride_bytes_[i];
    for (const std::unique_ptr<Counterpart>& each : to)
      each->put(part, {first, chunk_stride_bytes_}, pending_);
  });
  complete(pending_);
}

}  // namespace outcore::array
