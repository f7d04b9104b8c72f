// The inner loop of transfers: chunks between the components of this process and memory, several at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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
/// of 768 KiB or a chunk each, that are filled, written (or read, emptied) and used again in turn. So many
/// are under way that the disk is busy; as many others are filled before they can be written, or emptied
/// while those after them are read: a disk behind a host completes all that is under way at once, and would
/// have nothing to do until some of it was worked off. A mover either writes or reads. `processes`: that
/// share a disk, and move at the same time; each has fewer lanes then.
class ChunkMover {
 public:
  ChunkMover(const ChunkGrid& grid, std::span<const OwnedComponent> components, int processes);
  ~ChunkMover();  ///< waits

  /// Memory that a mover of components like this uses: lanes, and what requests decompress from, or cut out
  /// of.
  [[nodiscard]] static std::int64_t memory_bytes(const store::Geometry& geometry, int processes) noexcept;

  /// Space on the disk for a box that is going to be written, before anything is: it waits for what is under
  /// way. Throws Error(ENOSPC).
  void reserve(const Box& box);
  /// Begins to write a box with elements from the counterpart, which may be changed when it returns; the
  /// writes may still be under way. Chunks that the box covers in part keep the rest of their elements.
  void write(const Box& box, const Counterpart& from);
  /// Goes on to begin reading the box that is read next, as far as there are lanes.
  void begin_reading(const Box& box);
  /// Reads a box into all the counterparts. Once nothing of it is left to begin, `all_begun` is called when
  /// there is a lane to be used. If it throws, nothing is under way any more.
  void read(const Box& box, std::span<const std::unique_ptr<Counterpart>> to,
            const std::function<void()>& all_begun = {});
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
    [[nodiscard]] bool done() const noexcept;
    void wait();
  };

  [[nodiscard]] static std::int64_t lane_bytes_of_all(std::int64_t slot_bytes, int processes) noexcept;
  [[nodiscard]] bool busy() const noexcept;
  void wait_for_one();
  [[nodiscard]] bool can_read_more() const noexcept;
  [[nodiscard]] Lane& oldest() noexcept;
  Lane& next_lane();
  template <class Visit>
  void for_each_batch(const Box& box, Visit visit);
  void drop() noexcept;
  template <class Visit>
  void for_each_chunk(const Lane& lane, Visit visit) const;
  void read_old(Lane& lane, const Box& box);
  void fill(Lane& lane, const Box& box, const Counterpart& from);
  void begin_write(Lane& lane);
  void start_reading(const std::vector<Run>& runs, std::int64_t slots, const Box& box);
  void request(Lane& lane, const Box& box);
  void deliver(Lane& lane, const Box& box, std::span<const std::unique_ptr<Counterpart>> to);
  void wait_for_write(const OwnedComponent& component, std::int64_t slot, const Lane& reader);

  const ChunkGrid& grid_;
  std::span<const OwnedComponent> components_;
  std::int64_t slot_bytes_, lane_slots_;
  std::int64_t depth_;  ///< lanes under way at a time
  Extents chunk_stride_bytes_;
  device::Buffer buffer_;
  std::vector<Lane> lanes_;
  std::size_t next_ = 0;
  std::size_t reading_ = 0;  ///< lanes that are read and not delivered yet
  std::size_t ahead_ = 0;    ///< of these, the newest: of the box that is read next
  Pending pending_;
};

}  // namespace outcore::array
