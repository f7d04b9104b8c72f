// The state of a component and of its requests.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/request_state.hpp"
#include "base/undelivered.hpp"
#include "device/buffer.hpp"
#include "device/file.hpp"
#include "store/component.hpp"

namespace outcore::store {

inline std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

inline std::span<std::byte> part_of(std::span<std::byte> memory, std::int64_t offset, std::int64_t size) {
  return memory.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

/// A device request of a request: bytes of one or more contiguous slots.
struct SlotRequest {
  std::int64_t first_slot = 0, count = 1;
  int side = 0;
  std::int64_t first_block = 0;    ///< reads of a part: the first block that is read
  std::int64_t offset = 0;         ///< in the file
  std::span<std::byte> disk{};     ///< memory for the bytes on the disk
  std::span<std::byte> decoded{};  ///< memory for the decompressed data
  Request request{};
};

/// The places of a state before the committed one that somebody reads. Neighbours on one side are one range,
/// which saves memory.
class KeptState {
 public:
  explicit KeptState(std::uint64_t number) : number_(number) {}

  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  void add(std::int64_t slot, int side);                     ///< slots must rise from call to call
  [[nodiscard]] int side(std::int64_t slot) const noexcept;  ///< -1: the slot is not in it
  [[nodiscard]] int sides() const noexcept;                  ///< number of sides in use
  template <class Visit>
  void for_each(Visit visit) const {  ///< visit(slot, side), by rising slots
    for (const SideRange& range : ranges_)
      for (std::int64_t slot = range.first_slot; slot < range.end(); ++slot) visit(slot, range.side);
  }

 private:
  struct SideRange : SlotRange {
    int side = 0;
  };
  std::uint64_t number_;
  std::vector<SideRange> ranges_;
};

struct Component::State {
  SlotTable table;
  ComponentOptions options;
  mutable device::File file;
  std::vector<KeptState> kept;  ///< changed by keep and committed only
  std::mutex grow_mutex;
  std::atomic<int> sides_in_file{0};
  Undelivered undelivered;  ///< failures of writes for which nobody waited

  State(const std::string& path, SlotTable made, const ComponentOptions& chosen, bool create);

  [[nodiscard]] const Geometry& geometry() const noexcept { return table.geometry(); }
  [[nodiscard]] bool encodes() const noexcept { return geometry().codec.codec != Codec::none; }
  [[nodiscard]] bool raw(std::int64_t slot) const noexcept {
    return table.stored_bytes(slot) == geometry().slot_bytes;
  }
  /// Whether space of this size is better kept than given back. Measured: [M18].
  [[nodiscard]] bool keeps(std::int64_t unused_bytes) const;
  [[nodiscard]] std::string named(std::int64_t slot) const;
  void check_slots(const char* attempted, std::int64_t first, std::int64_t count,
                   std::size_t memory_bytes) const;
  void verify(std::int64_t slot, std::int64_t first_block, std::span<const std::byte> bytes,
              std::int64_t offset) const;

  [[nodiscard]] std::int64_t side_bytes() const noexcept {
    return geometry().slots * geometry().stride_bytes();
  }
  /// Sides of a slot that states before the committed one have, as bits.
  [[nodiscard]] std::uint64_t taken(std::int64_t slot) const noexcept;
  /// Whether the next version of a slot goes to another place than its present one, which then stays whole.
  [[nodiscard]] bool moves(std::int64_t slot) const noexcept {
    return !table.written(slot) || table.next_side(slot, taken(slot)) != table.side(slot);
  }
  /// The side of the next version of a slot. Throws Error(EBUSY) if there is none.
  [[nodiscard]] int next_side(std::int64_t slot) const;
  [[nodiscard]] bool is_kept(std::int64_t slot, int side) const noexcept { return taken(slot) >> side & 1; }
  [[nodiscard]] bool in_use(std::int64_t slot, int side) const noexcept;
  void grow(int side);  ///< makes the file have that side
  void shrink();        ///< removes sides to which nothing refers
  [[nodiscard]] std::int64_t room_at(std::int64_t slot, int side) const noexcept;
  void give_back(std::int64_t first_slot, std::int64_t count) noexcept;
  void make_room(std::int64_t slot, int side, std::int64_t size);
  void publish(std::int64_t slot, int side, std::int64_t size, std::span<const std::uint32_t> checksums);
};

/// The transfers of a request. Its device requests are ended in their order.
class Component::Transfer final : public FinishedByWaiter {
 public:
  Transfer(std::shared_ptr<Component::State> component, bool is_write)
      : owner(std::move(component)), write(is_write) {}
  /// The component reports a failure for which nobody has waited.
  ~Transfer() override;

  std::shared_ptr<Component::State> owner;
  const bool write;
  device::Buffer staging;
  std::vector<SlotRequest> asked;
  std::vector<std::uint32_t> checksums;  ///< writes: geometry.blocks() for each slot
  std::vector<std::int64_t> stored;      ///< writes: for each slot
  std::int64_t first_slot = 0;

  void begin(const SlotRequest& part);
  void note_written(std::int64_t slot, std::span<const std::byte> stored_bytes);
  [[nodiscard]] bool done() const noexcept override;

 private:
  void end() override;
  void finish_request(SlotRequest& part);
  void finish_write(const SlotRequest& part);
  void finish_read(const SlotRequest& part, std::int64_t moved);

  bool unwanted_ = false;  ///< nobody waits for the read any more
};

}  // namespace outcore::store
