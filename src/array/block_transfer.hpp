// Transfers between a disk array and blocks that each process has in memory of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "array/chunk_mover.hpp"
#include "array/transfer_queue.hpp"
#include "dio/chunks/portions.hpp"

namespace outcore::array {

/// Space on the disks of this process for boxes that are going to be written. Throws Error(ENOSPC): all must
/// hear of that before any writes.
void reserve_blocks(ChunkMover& mover, std::span<const Box> boxes);

/// The boxes of all processes, in order of rank, and memory of this one. Collective, in the thread of the
/// queue. Owners of chunks take what they need from portions that the others show in one-sided memory, round
/// by round. An error of one process stops its own part; all take part in all rounds. Throws what happened
/// here.
void write_blocks(const TransferQueue::Context& context, ChunkMover& mover, const dio::ChunkGrid& grid,
                  ElementType type, const Strided& memory, std::span<const Box> boxes);
void read_blocks(const TransferQueue::Context& context, ChunkMover& mover, const dio::ChunkGrid& grid,
                 ElementType type, const Strided& memory, std::span<const Box> boxes);

}  // namespace outcore::array
