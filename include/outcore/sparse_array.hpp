// Block-sparse arrays on disk: only the nonzero tiles of an array are stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "outcore/api.h"
#include "outcore/budget.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/element_type.hpp"
#include "outcore/memory.hpp"
#include "outcore/tiling.hpp"
#include "outcore/world.hpp"

namespace outcore {

/// An array on disk that stores its nonzero tiles only. Each lies in one piece, row-major, at one process: if
/// P processes made the array, nonzero tile number k lies at process k % P, behind the tiles of lower numbers
/// there. So the sizes of tiles alone determine where each lies. Any thread of any process moves tiles at any
/// time (noncollectively); order and errors are those of DiskArrayAccess. Error(EINVAL) for an index outside
/// the grid of tiles, and for memory of another size.
class OUTCORE_API BlockSparseArray {
 public:
  /// `options` as for DiskArray, but for `chunk` (one number, elements; empty: larger ones for larger tiles,
  /// as the cache has room for) and `typical` and `group`, which have no meaning. The size of the cache must
  /// be the same at all processes. Collective.
  BlockSparseArray(World& world, const TileMap& map, ElementType type, const DiskArrayOptions& options = {});
  /// The arguments are made in the collective gate: if `make` throws at one process, all throw.
  using Make = std::function<void(TileMap& map, ElementType& type, DiskArrayOptions& options)>;
  BlockSparseArray(World& world, const Make& make);
  /// Opens a persistent array. Error as of DiskArray::open; EINVAL for an array that is not block-sparse.
  /// Collective.
  [[nodiscard]] static BlockSparseArray open(World& world, const std::string& path, bool read_only = true,
                                             const DiskArrayCaches& caches = {});
  /// The arguments are made in the collective gate: if `make` throws at one process, all throw.
  [[nodiscard]] static BlockSparseArray open(World& world, const DiskArray::MakeOpening& make);

  [[nodiscard]] const TileMap& map() const noexcept { return map_; }
  [[nodiscard]] ElementType type() const noexcept { return array_.type(); }
  [[nodiscard]] const std::string& metadata() const noexcept { return metadata_; }
  /// The process that owns a tile, so that work can go where the data is; -1 for a zero tile.
  [[nodiscard]] int owner(const Extents& tile) const;
  /// Where each nonzero tile begins in the storage, in elements.
  [[nodiscard]] std::span<const std::int64_t> begins() const noexcept { return begin_; }

  /// `memory` holds all elements of a tile, in C order without gaps: an mdspan with other strides is
  /// Error(EINVAL). Getting a zero tile gives zeros; a put or accumulate to a zero tile is Error(EINVAL).
  [[nodiscard]] Request get_tile_async(const Extents& tile, const Elements& memory) const;
  [[nodiscard]] Request put_tile_async(const Extents& tile, const ConstElements& memory);
  /// Adds alpha times the memory. Concurrent accumulates add up.
  [[nodiscard]] Request accumulate_tile_async(const Extents& tile, const ConstElements& memory,
                                              Factor alpha = 1);
  template <Temporary Range>
  Request put_tile_async(const Extents& tile, Range&& memory) = delete;  ///< its memory would be gone
  template <Temporary Range>
  Request accumulate_tile_async(const Extents& tile, Range&& memory,
                                Factor alpha = 1) = delete;  ///< its memory would be gone
  /// The same, and wait.
  void get_tile(const Extents& tile, const Elements& memory) const;
  void put_tile(const Extents& tile, const ConstElements& memory);
  void accumulate_tile(const Extents& tile, const ConstElements& memory, Factor alpha = 1);

  /// The same with memory as bytes. `alpha` is one element of the array's type (null: one).
  [[nodiscard]] Request get_tile_async(const Extents& tile, std::span<std::byte> memory) const;
  [[nodiscard]] Request put_tile_async(const Extents& tile, std::span<const std::byte> memory);
  [[nodiscard]] Request accumulate_tile_async(const Extents& tile, std::span<const std::byte> memory,
                                              const void* alpha);
  void get_tile(const Extents& tile, std::span<std::byte> memory) const;
  void put_tile(const Extents& tile, std::span<const std::byte> memory);
  void accumulate_tile(const Extents& tile, std::span<const std::byte> memory, const void* alpha);

  void prefetch(std::span<const Extents> tiles) const;  ///< skips zero tiles
  void sync() { array_.sync(); }                        ///< as DiskArrayAccess::sync

  /// The one-dimensional array that stores the tiles: for flush, close and remove, which are collective, and
  /// for its properties.
  [[nodiscard]] DiskArray& storage() noexcept { return array_; }
  [[nodiscard]] const DiskArray& storage() const noexcept { return array_; }
  void flush(std::string_view metadata);  ///< with new metadata; collective
  /// With the metadata that `make` returns; if it throws at one process, all throw.
  void flush(const DiskArray::MakeMetadata& make);

 private:
  BlockSparseArray(DiskArray array, TileMap map, std::string metadata);
  void place_tiles();
  [[nodiscard]] Box box_of(std::int64_t number, std::size_t memory_bytes, std::string_view attempted) const;
  [[nodiscard]] std::span<std::byte> bytes_of(const Extents& tile, const ConstElements& memory) const;
  [[nodiscard]] std::int64_t there(const Extents& tile, std::string_view attempted) const;

  TileMap map_;
  Reservation reservation_;  ///< for the map and the positions of tiles
  std::string metadata_;
  DiskArray array_;
  std::vector<std::int64_t> begin_;  ///< where each nonzero tile begins, in elements
};

}  // namespace outcore
