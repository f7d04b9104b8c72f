#include "array/block_transfer.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>

namespace outcore::array {
namespace {

using Targets = std::vector<std::unique_ptr<Counterpart>>;

/// Keeps the first error of this process, and runs no further steps after it.
class FirstError {
 public:
  void run(const std::function<void()>& step) {
    if (error_) return;
    try {
      step();
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  void end() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
};

bool all_equal(std::span<const Box> boxes) {
  return std::all_of(boxes.begin(), boxes.end(), [&](const Box& box) { return box == boxes.front(); });
}

std::vector<dio::Portions> portions_of(std::span<const Box> boxes, const dio::ChunkGrid& grid,
                                       std::int64_t max_elements) {
  std::vector<dio::Portions> portions;
  portions.reserve(boxes.size());
  for (const Box& box : boxes) portions.emplace_back(box, grid.chunk(), max_elements);
  return portions;
}

std::int64_t rounds(std::span<const dio::Portions> portions) {
  std::int64_t most = 0;
  for (const dio::Portions& each : portions) most = std::max(most, each.count());
  return most;
}

/// Elements that fit into half of the staging memory.
std::int64_t max_elements(const TransferQueue::Context& context, ElementType type) {
  return context.stage_half_bytes / static_cast<std::int64_t>(size_bytes(type));
}

std::int64_t stage_of(const TransferQueue::Context& context, std::int64_t round) {
  return context.stage_offset + round % 2 * context.stage_half_bytes;
}

Strided staged(const TransferQueue::Context& context, std::int64_t round, const Box& box, ElementType type) {
  return {context.segment.local() + stage_of(context, round), row_major(box.shape(), size_bytes(type))};
}

}  // namespace

void reserve_blocks(ChunkMover& mover, std::span<const Box> boxes) {
  const bool same = all_equal(boxes);
  for (const Box& box : boxes) {
    if (!box.empty()) mover.reserve(box);
    if (same) return;
  }
}

void write_blocks(const TransferQueue::Context& context, ChunkMover& mover, const dio::ChunkGrid& grid,
                  ElementType type, const Strided& memory, std::span<const Box> boxes) {
  FirstError errors;
  const auto rank = static_cast<std::size_t>(context.transport.rank());
  const BlockCounterpart own(memory, boxes[rank], type);
  if (all_equal(boxes)) {  // the same data at all processes
    errors.run([&] {
      if (boxes[rank].empty()) return;
      mover.write(boxes[rank], own);
      mover.finish();
    });
    errors.end();
    return;
  }
  const std::vector<dio::Portions> portions = portions_of(boxes, grid, max_elements(context, type));
  Pending pending;
  FirstError shows;  // goes on if this process fails to write: the others need the portions that it shows
  for (std::int64_t round = 0; round < rounds(portions); ++round) {
    shows.run([&] {
      if (round >= portions[rank].count()) return;
      const Box mine = portions[rank][round];
      own.get(mine, staged(context, round, mine, type), pending);
      context.segment.flush();
    });
    // All processes have shown their portions, and have taken all that they need except from the last ones.
    context.transport.barrier();
    errors.run([&] {
      for (std::size_t process = 0; process < portions.size(); ++process) {
        if (round >= portions[process].count()) continue;
        const Box box = portions[process][round];
        mover.write(box, RemoteCounterpart(context.segment, static_cast<int>(process),
                                           stage_of(context, round), box, type));
      }
    });
  }
  errors.run([&] { mover.finish(); });
  errors.end();
  shows.end();
}

void read_blocks(const TransferQueue::Context& context, ChunkMover& mover, const dio::ChunkGrid& grid,
                 ElementType type, const Strided& memory, std::span<const Box> boxes) {
  FirstError errors;
  const auto rank = static_cast<std::size_t>(context.transport.rank());
  const std::vector<dio::Portions> portions = portions_of(boxes, grid, max_elements(context, type));
  const bool same = all_equal(boxes);
  const BlockCounterpart own(memory, boxes[rank], type);
  Pending pending;
  for (std::int64_t round = 0; round < rounds(portions); ++round) {
    const auto target = [&](std::size_t process, const Box& box) -> std::unique_ptr<Counterpart> {
      if (portions.size() == 1) return std::make_unique<BlockCounterpart>(own);
      return std::make_unique<RemoteCounterpart>(context.segment, static_cast<int>(process),
                                                 stage_of(context, round), box, type);
    };
    errors.run([&] {
      Targets targets;
      for (std::size_t process = 0; process < portions.size(); ++process) {
        if (round >= portions[process].count()) continue;
        const Box box = portions[process][round];
        targets.push_back(target(process, box));
        if (same && process + 1 < portions.size()) continue;  // one read serves all
        mover.read(box, targets);
        targets.clear();
      }
      mover.finish();
      context.segment.flush();
    });
    context.transport.barrier();  // all portions are here; those of the round before have been used
    errors.run([&] {
      if (portions.size() == 1 || round >= portions[rank].count()) return;
      const Box mine = portions[rank][round];
      own.put(mine, staged(context, round, mine, type), pending);
    });
  }
  errors.end();
}

}  // namespace outcore::array
