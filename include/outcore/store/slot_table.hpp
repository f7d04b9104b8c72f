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
  [[nodiscard]] int side(std::int64_t slot) const noexcept { return state_[index(slot)] & side_bit ? 1 : 0; }
  /// Of the blocks of what is stored.
  [[nodiscard]] std::span<const std::uint32_t> checksums(std::int64_t slot) const noexcept;

  /// Where the next version goes: to the other side if the one here belongs to the committed state.
  [[nodiscard]] int next_side(std::int64_t slot) const noexcept;
  /// There are as many checksums as blocks in `stored_bytes`.
  void set(std::int64_t slot, int side, std::int64_t stored_bytes, std::span<const std::uint32_t> checksums);

  /// What the table says now is the committed state. Calls `stale` for places that held the one before, with
  /// the size of what may be there.
  void commit(const std::function<void(std::int64_t slot, int side)>& stale);

  [[nodiscard]] std::int64_t total_stored_bytes() const noexcept;  ///< of all slots

  /// Size of the largest file that a table of such slots makes.
  [[nodiscard]] static std::int64_t most_bytes(const Geometry& geometry) noexcept;
  /// As a file: with magic, version, byte order and checksums.
  [[nodiscard]] std::vector<std::byte> encode() const;
  /// The table in `bytes`, which may be anything; its state counts as committed. Throws Error naming `path`:
  /// EINVAL if it is something else, ENOTSUP for another version or byte order, EIO if it is truncated or
  /// damaged, ENOMEM.
  [[nodiscard]] static SlotTable decode(std::span<const std::byte> bytes, const std::string& path);

 private:
  static constexpr std::uint8_t side_bit = 1, committed_bit = 2, committed_side_bit = 4;

  [[nodiscard]] std::size_t index(std::int64_t slot) const noexcept;

  Geometry geometry_;
  std::vector<std::uint32_t> stored_;
  std::vector<std::uint8_t> state_;
  std::vector<std::uint32_t> checksums_;  ///< geometry_.blocks() for each slot
};

}  // namespace outcore::store
