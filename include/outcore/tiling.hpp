// Tile maps: which tiles of a block-sparse array are stored.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "outcore/api.h"
#include "outcore/box.hpp"

namespace outcore {

/// Which tiles of an array are not zero. Boundaries along each axis cut the array into tiles, which may have
/// different sizes. Nonzero tiles have numbers, in row-major order of their indices.
class OUTCORE_API TileMap {
 public:
  static constexpr std::int64_t max_tiles = 1 << 24;  ///< including zero tiles

  /// `boundaries`: for each axis an increasing list from 0 to its extent; {0}: an axis without elements.
  /// `nonzero`: one flag for each tile, in row-major order. Throws Error(EINVAL) for anything else, and for
  /// more than max_tiles tiles.
  TileMap(std::vector<std::vector<std::int64_t>> boundaries, std::vector<bool> nonzero);
  TileMap() = default;  ///< a map of rank 0, without tiles

  [[nodiscard]] const Extents& shape() const noexcept { return shape_; }  ///< in elements
  [[nodiscard]] const Extents& grid() const noexcept { return grid_; }    ///< tiles along each axis
  [[nodiscard]] const std::vector<std::vector<std::int64_t>>& boundaries() const noexcept {
    return boundaries_;
  }
  [[nodiscard]] std::int64_t count() const noexcept { return static_cast<std::int64_t>(tiles_.size()); }

  /// Throw Error(EINVAL) for an index outside the grid.
  [[nodiscard]] Box box(const Extents& tile) const;
  [[nodiscard]] std::int64_t number(const Extents& tile) const;  ///< -1 if the tile is zero

  [[nodiscard]] Extents tile(std::int64_t number) const;  ///< index of a nonzero tile; asserts `number`
  [[nodiscard]] std::int64_t elements(std::int64_t number) const;  ///< in a nonzero tile
  friend bool operator==(const TileMap&, const TileMap&) = default;

  /// As JSON: {"boundaries": [[0, 3], [0, 2, 5]], "nonzero": "c"}; a hexadecimal digit of `nonzero` stands
  /// for four tiles.
  [[nodiscard]] std::string encode() const;
  /// Reads what `encode` wrote, at the beginning of `text`; `used` receives its length. Throws Error(EINVAL)
  /// for anything else.
  [[nodiscard]] static TileMap decode(const std::string& text, std::size_t& used);

 private:
  [[nodiscard]] std::int64_t position(const Extents& tile) const;
  [[nodiscard]] Extents index_of(std::int64_t position) const noexcept;

  std::vector<std::vector<std::int64_t>> boundaries_;
  Extents shape_, grid_;
  std::vector<std::int64_t> tiles_;  ///< positions of the nonzero tiles, increasing
};

}  // namespace outcore
