// Transfers between a disk array and blocks in the memory of each process.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "array/chunk_mover.hpp"
#include "array/transfer_queue.hpp"
#include "dio/chunks/portions.hpp"

namespace outcore::array {

/// Reserves space on the disks of this process for boxes that are going to be written. Throws Error(ENOSPC),
/// of which all processes must learn before any writes.
void reserve_blocks(ChunkMover& mover, std::span<const Box> boxes);

/// `boxes`: those of all processes, in order of rank; `memory`: of this process. Collective, in the thread of
/// the queue. The processes show portions in one-sided memory, round by round, and owners of chunks take
/// their parts. After an error a process stops its own work but takes part in all rounds. Throws the error of
/// this process.
void write_blocks(const TransferQueue::Context& context, ChunkMover& mover, const dio::ChunkGrid& grid,
                  ElementType type, const Strided& memory, std::span<const Box> boxes);
void read_blocks(const TransferQueue::Context& context, ChunkMover& mover, const dio::ChunkGrid& grid,
                 ElementType type, const Strided& memory, std::span<const Box> boxes);

}  // namespace outcore::array
