// The inner loop of transfers: chunks between the components of this process and memory, several at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "array/counterpart.hpp"
#include "device/buffer.hpp"
#include "dio/chunks/grid.hpp"
#include "dio/chunks/overlap.hpp"
#include "dio/chunks/store.hpp"
#include "outcore/box.hpp"
#include "store/component.hpp"

namespace outcore::array {

/// Moves what lies in a box and in components of this process. Chunks travel in buffers: parts of one
/// allocation, of 1 MiB or a chunk each, that are filled, written (or read, emptied) and used again in turn.
/// So many are under way that the disk is busy; as many others are filled before they can be written, or
/// emptied while those after them are read: a disk behind a host completes all that is under way at once, and
/// would have nothing to do until some of it was worked off. Where a large budget allows (a twenty-fourth)
/// there are half as many again, for a thread that is late. A mover either writes or reads. All buffers take
/// no more than a twelfth of the budget, but for large chunks. `processes`: that share a disk, and move at
/// the same time; each has fewer buffers then.
/// Measured: [M10].
class ChunkMover {
 public:
  ChunkMover(const dio::ChunkGrid& grid, std::span<const dio::OwnedComponent> components,
             std::int64_t budget_bytes, int processes);
  ~ChunkMover();  ///< waits

  /// Memory that a mover uses: buffers, and, `staged`, what requests decompress from.
  [[nodiscard]] static std::int64_t memory_bytes(std::int64_t slot_bytes, bool staged,
                                                 std::int64_t budget_bytes, int processes) noexcept;

  /// Space on the disk for a box that is going to be written, before anything is: it waits for what is under
  /// way. Throws Error(ENOSPC).
  void reserve(const Box& box);
  /// Begins to write a box with elements from the counterpart, which may be changed when it returns; the
  /// writes may still be under way. Chunks that the box covers in part keep the rest of their elements.
  void write(const Box& box, const Counterpart& from);
  /// Goes on to begin reading a box that is going to be read, as far as there are buffers; true once all of
  /// it has been begun. `before`: so many boxes are read first, which have been begun, all of them.
  bool begin_reading(std::size_t before, const Box& box);
  /// Reads a box into all the counterparts. Once nothing of it is left to begin, `all_begun` is called when
  /// there is a buffer to be used. If it throws, nothing is under way any more.
  void read(const Box& box, std::span<const std::unique_ptr<Counterpart>> to,
            const std::function<void()>& all_begun = {});
  void finish();  ///< all of it is done; throws the first error
  /// Writing to boxes has failed, here or elsewhere: chunks that it has given space on the disk are what they
  /// were before, and that space, and what was reserved, is given back. Chunks written in place stay as they
  /// are.
  void take_back(std::span<const Box> boxes) noexcept;

 private:
  struct BufferCounts {
    std::int64_t depth;  ///< under way at a time
    std::int64_t slots;  ///< of one
    std::int64_t batches;
    BufferCounts(std::int64_t slot_bytes, std::int64_t budget_bytes, int processes) noexcept;
    [[nodiscard]] std::int64_t count() const noexcept { return batches * depth; }
  };
  struct Blocks {
    std::int64_t first, count;
  };
  struct OwnedSlots : store::SlotRange {
    const dio::OwnedComponent* component = nullptr;
  };
  struct ChunkBuffer {
    std::byte* memory = nullptr;
    std::vector<OwnedSlots> ranges;
    std::int64_t slots = 0;
    std::vector<Request> requests;
    [[nodiscard]] bool done() const noexcept;
    void wait();
  };

  [[nodiscard]] bool busy() const noexcept;
  void wait_for_one();
  [[nodiscard]] bool can_read_more() const noexcept;
  [[nodiscard]] ChunkBuffer& oldest() noexcept;
  ChunkBuffer& next_buffer();
  template <class Visit>
  void for_each_batch(const Box& box, Visit visit);
  void drop() noexcept;
  template <class Visit>
  void for_each_chunk(const ChunkBuffer& buffer, Visit visit) const;
  void read_old(ChunkBuffer& buffer, const Box& box);
  void fill(ChunkBuffer& buffer, const Box& box, const Counterpart& from);
  void begin_write(ChunkBuffer& buffer);
  void start_reading(const std::vector<OwnedSlots>& ranges, std::int64_t slots, const Box& box);
  void request(ChunkBuffer& buffer, const Box& box);
  [[nodiscard]] std::vector<Blocks> touched(const store::Geometry& geometry, const Box& box,
                                            const Box& chunk) const;
  void deliver(ChunkBuffer& buffer, const Box& box, std::span<const std::unique_ptr<Counterpart>> to);
  void note_former(const OwnedSlots& range);
  void wait_for_write(const dio::OwnedComponent& component, std::int64_t slot, const ChunkBuffer& reader);

  const dio::ChunkGrid& grid_;
  std::span<const dio::OwnedComponent> components_;
  std::int64_t slot_bytes_, slots_of_buffer_ = 0;
  std::int64_t depth_ = 0;
  Extents chunk_stride_bytes_;
  device::Buffer memory_;
  std::vector<ChunkBuffer> buffers_;
  std::size_t next_ = 0;
  std::size_t reading_ = 0;        ///< buffers that are read and not delivered yet
  std::deque<std::size_t> ahead_;  ///< of these, the newest: of each of the boxes that are read next
  Pending pending_;
  std::vector<std::pair<const dio::OwnedComponent*, store::Component::Former>>
      former_;  ///< of what was written
};

}  // namespace outcore::array
