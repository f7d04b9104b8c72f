// The layout of a disk array: a grid of equal chunks, dealt out to components.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/sibling.hpp"
#include "outcore/box.hpp"
#include "store/geometry.hpp"

namespace outcore::dio {

inline constexpr std::int64_t usual_chunk_bytes = 128 << 10;

/// Shape of chunks for an array that is read and written in sections like `typical_section`: that shape, as
/// far as `target_bytes` allow. If its rank is 0 (unknown), the shape suits sections of all shapes: sides are
/// nearly equal, except the first, which is four times as long, because a part of a chunk along it can be
/// read alone. Where possible, sides divide the array evenly and are multiples of eight. A chunk is never
/// larger than the array (unless that has no elements), nor than `target_bytes` (unless it is a single
/// element). Throws Error(EINVAL) for an invalid shape, and for a section of another rank or with sides below
/// one.
[[nodiscard]] OUTCORE_SIBLING Extents choose_chunk(const Extents& shape, std::size_t element_bytes,
                                                   const Extents& typical_section = {},
                                                   std::int64_t target_bytes = usual_chunk_bytes);

/// Chunks are numbered in row-major order of the grid; chunks at the upper edges have full size, too, and
/// reach beyond the array. Chunk k belongs to component (k / group) % components, in which it has the slot (k
/// / group / components) * group + k % group: so neighbours lie together in groups, every component has a
/// share of a section, and the slots of a component are 0 .. slots - 1 without holes.
class ChunkGrid {
 public:
  static constexpr std::int64_t default_group = 16;
  static constexpr std::int64_t max_group = std::int64_t{1} << 30;

  /// Where a chunk lies.
  struct Location {
    int component = 0;
    std::int64_t slot = 0;
    friend bool operator==(const Location&, const Location&) = default;
  };

  ChunkGrid() = default;  ///< of an array of rank 0, without chunks
  /// Throws Error(EINVAL) unless there is at least one dimension, no extent is negative, all other numbers
  /// are positive, and the size of all chunks in bytes fits into 62 bits. An array without elements has no
  /// chunks.
  ChunkGrid(const Extents& shape, const Extents& chunk, std::size_t element_bytes, int components,
            std::int64_t group = default_group);

  [[nodiscard]] const Extents& shape() const noexcept { return shape_; }
  [[nodiscard]] const Extents& chunk() const noexcept { return chunk_; }
  [[nodiscard]] const Extents& counts() const noexcept { return counts_; }  ///< chunks along each dimension
  [[nodiscard]] std::size_t element_bytes() const noexcept { return element_bytes_; }
  [[nodiscard]] int components() const noexcept { return components_; }
  [[nodiscard]] std::int64_t group() const noexcept { return group_; }
  [[nodiscard]] std::int64_t chunks() const noexcept { return chunks_; }
  [[nodiscard]] std::int64_t chunk_bytes() const noexcept;
  [[nodiscard]] std::int64_t slots(int component) const noexcept;

  /// Arguments must lie in the grid; that is asserted, not checked.
  [[nodiscard]] Location locate(std::int64_t chunk) const noexcept;
  [[nodiscard]] std::int64_t chunk_at(int component, std::int64_t slot) const noexcept;
  /// The first slot of a component whose chunk has this number or a higher one; slots(component) if there is
  /// none.
  [[nodiscard]] std::int64_t first_slot(int component, std::int64_t chunk) const noexcept;
  [[nodiscard]] std::int64_t chunk_holding(const Extents& element) const noexcept;
  /// The elements of a chunk, without those beyond the upper edges of the array.
  [[nodiscard]] Box chunk_box(std::int64_t chunk) const noexcept;
  [[nodiscard]] Box chunks_of(const Box& box) const noexcept;  ///< grid indices of the chunks that meet a box

  /// Calls `visit` for the slots of a component whose chunks meet the box, in rising order, in ranges as
  /// long as can be. The effort grows with the rows of chunks that meet the box. Throws
  /// Error(EINVAL) for a box that is not inside the array.
  void for_each_slot_range(int component, const Box& box,
                           const std::function<void(const store::SlotRange&)>& visit) const;
  [[nodiscard]] std::int64_t count(int component, const Box& box) const;  ///< number of such slots

 private:
  Extents shape_, chunk_, counts_;
  std::size_t element_bytes_ = 1;
  int components_ = 1;
  std::int64_t group_ = 1, chunks_ = 0;
};

}  // namespace outcore::dio
