// Transfers between a disk array and blocks that each process has in memory of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "array/chunk_mover.hpp"
#include "array/transfer_queue.hpp"

namespace outcore::array {

/// The parts in which a block passes through memory of limited size. They end where chunks end, if they can.
/// Numbered from 0; closed forms, so that every process knows those of the others.
class Portions {
 public:
  Portions(const Box& box, const Extents& chunk, std::int64_t most_elements);
  [[nodiscard]] std::int64_t count() const noexcept { return counts_.product(); }
  [[nodiscard]] Box operator[](std::int64_t i) const;

 private:
  Box box_;
  Extents step_, first_, counts_;  // all portions but the first of an axis begin at multiples of the step
};

/// Space on the disks of this process for boxes that are going to be written. Throws Error(ENOSPC): all must
/// hear of that before any writes.
void reserve_blocks(ChunkMover& mover, std::span<const Box> boxes);

/// The boxes of all processes, in order of rank, and memory of this one. Collective, in the thread of the
/// queue. Owners of chunks take what they need from portions that the others show in one-sided memory, round
/// by round. An error of one process stops its own part; all take part in all rounds. Throws what happened
/// here.
void write_blocks(const TransferQueue::Context& context, ChunkMover& mover, const ChunkGrid& grid,
                  ElementType type, const Strided& memory, std::span<const Box> boxes);
void read_blocks(const TransferQueue::Context& context, ChunkMover& mover, const ChunkGrid& grid,
                 ElementType type, const Strided& memory, std::span<const Box> boxes);

}  // namespace outcore::array
