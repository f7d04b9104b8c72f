// The table of a component: the places, sizes and checksums of its slots.
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

/// Kept in memory, and encoded when the array is committed. It takes memory, and space in a file, only for
/// the slots that are written and some neighbours. Different threads may use different slots at the same
/// time; a method for all slots allows no other call meanwhile. Slots are asserted, not checked.
class SlotTable {
 public:
  /// No slot is written. Throws as check(geometry) does.
  explicit SlotTable(const Geometry& geometry);
  ~SlotTable();
  SlotTable(SlotTable&&) noexcept;
  SlotTable& operator=(SlotTable&&) noexcept;

  /// Sets `account`, once. It is called with the memory in use: now, before more is taken (if it throws, none
  /// is taken), and with a negative number when memory is given back.
  void account_to(std::function<void(std::int64_t bytes)> account);

  [[nodiscard]] const Geometry& geometry() const noexcept { return geometry_; }

  [[nodiscard]] bool written(std::int64_t slot) const noexcept { return stored_bytes(slot) != 0; }
  /// Size on disk: slot_bytes if the slot is not compressed, less if it is, 0 if it was never written.
  [[nodiscard]] std::int64_t stored_bytes(std::int64_t slot) const noexcept;
  [[nodiscard]] int side(std::int64_t slot) const noexcept;
  /// The side that belongs to the committed state; -1 if the slot is not in it.
  [[nodiscard]] int committed_side(std::int64_t slot) const noexcept;
  /// Number of sides in use, by any slot or the committed state; at least those of the geometry.
  [[nodiscard]] int sides() const noexcept;
  /// The checksums of the stored blocks.
  [[nodiscard]] std::span<const std::uint32_t> checksums(std::int64_t slot) const noexcept;

  static constexpr int max_sides = 64;
  /// The side of the next version: another side if the present one belongs to the committed state, and none
  /// whose bit is set in `taken`. -1 if there is none.
  [[nodiscard]] int next_side(std::int64_t slot, std::uint64_t taken = 0) const noexcept;
  /// Allocates the memory that `set` needs for a slot, so that `set` cannot fail. Throws Error(ENOMEM), and
  /// the errors of the account.
  void prepare(std::int64_t slot);
  /// Sets the version of a slot, with one checksum for each block of `stored_bytes`. Throws as `prepare`
  /// does, if that was not called.
  void set(std::int64_t slot, int side, std::int64_t stored_bytes, std::span<const std::uint32_t> checksums);

  /// The entry of a slot, for `restore`.
  struct Entry {
    std::uint32_t stored = 0, room = 0;
    std::uint16_t state = 0;
    std::vector<std::uint32_t> checksums;
  };
  [[nodiscard]] Entry entry(std::int64_t slot) const;
  void restore(std::int64_t slot, const Entry& entry) noexcept;  ///< for a slot that was set after `entry`

  /// Makes the present entries the committed state. Calls `stale` for places of the committed state before,
  /// with the size that may be in use there.
  void commit(const std::function<void(std::int64_t slot, int side)>& stale);

  /// With a codec: a lower bound of the bytes that have space, from the beginning of a slot on its side.
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
  /// Decodes a table; its state counts as committed. `bytes` may be anything. Throws Error naming `path`:
  /// EINVAL for another kind of file, ENOTSUP for another version or byte order, EIO if it is truncated or
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
