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

/// Moves the chunks of a box that components of this process have. Chunks travel in buffers: parts of one
/// allocation, of 1 MiB or a chunk each, which are filled and written (or read and emptied) in turn. Enough
/// buffers are under way to keep the disk busy. As many others are filled ahead, or emptied while the next
/// ones are read: a virtual disk may complete all requests at once, and would be idle until some buffers are
/// processed. If a large budget allows (a twenty-fourth of it), there are half as many again, for a thread
/// that is late. A mover either writes or reads. All buffers take no more than a twelfth of the budget,
/// except for large chunks. `processes`: the number of processes that share a disk and move at the same time;
/// each then has fewer buffers. Measured: [M10].
class ChunkMover {
 public:
  ChunkMover(const dio::ChunkGrid& grid, std::span<const dio::OwnedComponent> components,
             std::int64_t budget_bytes, int processes);
  ~ChunkMover();  ///< waits

  /// Memory that a mover uses: buffers, and, if `staged`, memory from which requests decompress.
  [[nodiscard]] static std::int64_t memory_bytes(std::int64_t slot_bytes, bool staged,
                                                 std::int64_t budget_bytes, int processes) noexcept;

  /// Reserves space on the disk for a box, before anything of it is written. Waits for requests under way.
  /// Throws Error(ENOSPC).
  void reserve(const Box& box);
  /// Begins to write a box with elements from the counterpart. When it returns, the counterpart may be
  /// changed, though writes may still be under way. Chunks that the box covers in part keep their other
  /// elements.
  void write(const Box& box, const Counterpart& from);
  /// Begins to read a box ahead, as far as there are buffers; true once all of it has been begun. `before`:
  /// the number of boxes, all of them begun, that are read first.
  bool begin_reading(std::size_t before, const Box& box);
  /// Reads a box into all the counterparts. Once all of its reads have begun, it calls `all_begun` whenever
  /// there is a free buffer. If it throws, no request is under way any more.
  void read(const Box& box, std::span<const std::unique_ptr<Counterpart>> to,
            const std::function<void()>& all_begun = {});
  void finish();  ///< completes all requests; throws the first error
  /// Call it after a write to boxes has failed, here or at another process. Chunks that went to new space on
  /// the disk become what they were before; that space, and reserved space, is given back. Chunks written in
  /// place stay as they are.
  void take_back(std::span<const Box> boxes) noexcept;

 private:
  struct BufferCounts {
    std::int64_t depth;  ///< buffers under way at a time
    std::int64_t slots;  ///< of one buffer
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
  std::deque<std::size_t> ahead_;  ///< the newest of these: their number for each box that is read next
  Pending pending_;
  std::vector<std::pair<const dio::OwnedComponent*, store::Component::Former>>
      former_;  ///< of slots that were written
};

}  // namespace outcore::array
