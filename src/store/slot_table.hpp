// The table of a component: which slots hold what, where, and with which checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/geometry.hpp"

namespace outcore::store {

class SlotPages;

/// Kept in memory, made into bytes when the array is committed. It takes memory, and space in a file, for the
/// slots that are written and some neighbours, whatever their number. Different slots may be used by
/// different threads at the same time; what concerns all slots needs the table alone. Slots are not checked,
/// but asserted.
class SlotTable {
 public:
  /// No slot is written. Throws as check(geometry) does.
  explicit SlotTable(const Geometry& geometry);
  ~SlotTable();
  SlotTable(SlotTable&&) noexcept;
  SlotTable& operator=(SlotTable&&) noexcept;

  /// Calls `account` with the memory that is in use, now and before more is taken (it may throw, and then
  /// there is none), and with a negative number when it is given back. Once.
  void account_to(std::function<void(std::int64_t bytes)> account);

  [[nodiscard]] const Geometry& geometry() const noexcept { return geometry_; }

  [[nodiscard]] bool written(std::int64_t slot) const noexcept { return stored_bytes(slot) != 0; }
  /// Size on disk: slot_bytes if it lies there as it is, less if it is compressed, 0 if never written.
  [[nodiscard]] std::int64_t stored_bytes(std::int64_t slot) const noexcept;
  [[nodiscard]] int side(std::int64_t slot) const noexcept;
  /// The side that belongs to the committed state; -1 if the slot is not in it.
  [[nodiscard]] int committed_side(std::int64_t slot) const noexcept;
  /// So many sides are in use, by any slot or the committed state; at least those of the geometry.
  [[nodiscard]] int sides() const noexcept;
  /// Of the blocks of what is stored.
  [[nodiscard]] std::span<const std::uint32_t> checksums(std::int64_t slot) const noexcept;

  static constexpr int max_sides = 64;
  /// Where the next version goes: to another side if the one here belongs to the committed state, and to none
  /// of those whose bits are set in `taken`. -1 if there is none.
  [[nodiscard]] int next_side(std::int64_t slot, std::uint64_t taken = 0) const noexcept;
  /// Takes the memory that `set` needs for a slot, which then cannot fail. Throws Error(ENOMEM), and what the
  /// account does.
  void prepare(std::int64_t slot);
  /// There are as many checksums as blocks in `stored_bytes`. Throws as `prepare` does, if that was not
  /// called.
  void set(std::int64_t slot, int side, std::int64_t stored_bytes, std::span<const std::uint32_t> checksums);

  /// What the table says of a slot, to be said again by `restore`.
  struct Entry {
    std::uint32_t stored = 0, room = 0;
    std::uint16_t state = 0;
    std::vector<std::uint32_t> checksums;
  };
  [[nodiscard]] Entry entry(std::int64_t slot) const;
  void restore(std::int64_t slot, const Entry& entry) noexcept;  ///< of a slot that was set since

  /// What the table says now is the committed state. Calls `stale` for places that held the one before, with
  /// the size of what may be there.
  void commit(const std::function<void(std::int64_t slot, int side)>& stale);

  /// With a codec: bytes from the beginning of a slot on, on its side, that have space, at least.
  [[nodiscard]] std::int64_t room(std::int64_t slot) const noexcept;
  void set_room(std::int64_t slot, std::int64_t bytes) noexcept;  ///< of a slot that is written

  [[nodiscard]] std::int64_t total_stored_bytes() const noexcept;  ///< of all slots
  /// Calls `visit` for the slots that are written, by rising numbers. The effort grows with their number.
  void for_each_written(const std::function<void(std::int64_t slot)>& visit) const;
  /// The first written slot from `slot` on, -1 if there is none.
  [[nodiscard]] std::int64_t next_written(std::int64_t slot) const;

  /// Size of the largest file that a table of such slots makes.
  [[nodiscard]] static std::int64_t max_bytes(const Geometry& geometry) noexcept;
  /// As a file: with magic, version, byte order and checksums.
  [[nodiscard]] std::vector<std::byte> encode() const;
  /// The table in `bytes`, which may be anything; its state counts as committed. Throws Error naming `path`:
  /// EINVAL if it is something else, ENOTSUP for another version or byte order, EIO if it is truncated or
  /// damaged, ENOMEM.
  [[nodiscard]] static SlotTable decode(std::span<const std::byte> bytes, const std::string& path);

 private:
  static constexpr std::uint16_t side_bits = max_sides - 1, committed_bit = max_sides;
  static constexpr int committed_shift = 8;

  /// side_bits, committed_bit, and the side of the committed state.
  [[nodiscard]] std::uint16_t state(std::int64_t slot) const noexcept;

  Geometry geometry_;
  std::unique_ptr<SlotPages> pages_;
};

}  // namespace outcore::store
