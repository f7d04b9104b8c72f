// The table of a component: which slots hold what, where, and with which checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "outcore/store/geometry.hpp"

namespace outcore::store {

/// Kept in memory, made into bytes when the array is committed. Different slots may be used by different
/// threads at the same time; what concerns all slots needs the table alone. Slots are not checked, but
/// asserted.
class SlotTable {
 public:
  /// No slot is written. Throws as check(geometry) does, and Error(ENOMEM).
  explicit SlotTable(const Geometry& geometry);

  [[nodiscard]] const Geometry& geometry() const noexcept { return geometry_; }

  [[nodiscard]] bool written(std::int64_t slot) const noexcept { return stored_[index(slot)] != 0; }
  /// Size on disk: slot_bytes if it lies there as it is, less if it is compressed, 0 if never written.
  [[nodiscard]] std::int64_t stored_bytes(std::int64_t slot) const noexcept { return stored_[index(slot)]; }
  [[nodiscard]] int side(std::int64_t slot) const noexcept { return state_[index(slot)] & side_bits; }
  /// The side that belongs to the committed state; -1 if the slot is not in it.
  [[nodiscard]] int committed_side(std::int64_t slot) const noexcept {
    const std::uint16_t state = state_[index(slot)];
    return state & committed_bit ? state >> committed_shift : -1;
  }
  /// So many sides are in use, by any slot or the committed state; at least those of the geometry.
  [[nodiscard]] int sides() const noexcept;
  /// Of the blocks of what is stored.
  [[nodiscard]] std::span<const std::uint32_t> checksums(std::int64_t slot) const noexcept;

  static constexpr int most_sides = 64;
  /// Where the next version goes: to another side if the one here belongs to the committed state, and to none
  /// of those whose bits are set in `taken`. -1 if there is none.
  [[nodiscard]] int next_side(std::int64_t slot, std::uint64_t taken = 0) const noexcept;
  /// There are as many checksums as blocks in `stored_bytes`.
  void set(std::int64_t slot, int side, std::int64_t stored_bytes, std::span<const std::uint32_t> checksums);

  /// What the table says now is the committed state. Calls `stale` for places that held the one before, with
  /// the size of what may be there.
  void commit(const std::function<void(std::int64_t slot, int side)>& stale);

  [[nodiscard]] std::int64_t total_stored_bytes() const noexcept;  ///< of all slots

  /// As a file: with magic, version, byte order and checksums. Version 2 if more than two sides are in use.
  [[nodiscard]] std::vector<std::byte> encode() const;
  /// The table in `bytes`, which may be anything; its state counts as committed. Throws Error naming `path`:
  /// EINVAL if it is something else, ENOTSUP for another version or byte order, EIO if it is truncated or
  /// damaged, ENOMEM.
  [[nodiscard]] static SlotTable decode(std::span<const std::byte> bytes, const std::string& path);

 private:
  static constexpr std::uint16_t side_bits = most_sides - 1, committed_bit = most_sides;
  static constexpr int committed_shift = 8;

  [[nodiscard]] std::size_t index(std::int64_t slot) const noexcept;

  Geometry geometry_;
  std::vector<std::uint32_t> stored_;
  std::vector<std::uint16_t> state_;      ///< side_bits, committed_bit, and the side of the committed state
  std::vector<std::uint32_t> checksums_;  ///< geometry_.blocks() for each slot
};

}  // namespace outcore::store
