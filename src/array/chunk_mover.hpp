// The inner loop of transfers: chunks between the components of this process and memory, several at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "array/chunk_store.hpp"
#include "array/counterpart.hpp"
#include "outcore/array/chunk_grid.hpp"
#include "outcore/box.hpp"
#include "outcore/device/buffer.hpp"
#include "outcore/store/component.hpp"

namespace outcore::array {

/// Moves what lies in a box and in components of this process. Chunks travel in lanes: pieces of one buffer,
/// a few MiB each, that are filled, written (or read, emptied) and used again in turn, so that the disk
/// always has several requests while the processor copies. A mover either writes or reads.
class ChunkMover {
 public:
  ChunkMover(const ChunkGrid& grid, std::span<const OwnedComponent> components);
  ~ChunkMover();  ///< waits

  /// Memory that a mover for chunks of so many bytes uses.
  [[nodiscard]] static std::int64_t memory_bytes(std::int64_t slot_bytes) noexcept;

  /// Begins to write a box with elements from the counterpart, which may be changed when it returns; the
  /// writes may still be under way. Chunks that the box covers in part keep the rest of their elements.
  void write(const Box& box, const Counterpart& from);
  /// Reads a box into all the counterparts.
  void read(const Box& box, std::span<const std::unique_ptr<Counterpart>> to);
  void finish();  ///< all of it is done; throws the first error

 private:
  struct Run {
    const OwnedComponent* component;
    std::int64_t first_slot, count;
  };
  struct Lane {
    std::byte* memory = nullptr;
    std::vector<Run> runs;
    std::int64_t slots = 0;
    std::vector<store::Component::Request> requests;
    void wait();
  };

  Lane& next_lane();
  template <class Visit>
  void for_each_batch(const Box& box, Visit visit);
  template <class Visit>
  void for_each_chunk(const Lane& lane, Visit visit) const;
  void read_old(Lane& lane, const Box& box);
  void fill_and_write(Lane& lane, const Box& box, const Counterpart& from);
  void start_reading(Lane& lane, const Box& box);
  void deliver(Lane& lane, const Box& box, std::span<const std::unique_ptr<Counterpart>> to);
  void wait_for_write(const OwnedComponent& component, std::int64_t slot, const Lane& reader);

  const ChunkGrid& grid_;
  std::span<const OwnedComponent> components_;
  std::int64_t slot_bytes_, lane_slots_;
  Extents chunk_stride_bytes_;
  device::Buffer buffer_;
  std::vector<Lane> lanes_;
  std::size_t next_ = 0;
  Pending pending_;
};

}  // namespace outcore::array
