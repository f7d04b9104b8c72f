// Tile maps: which blocks of a block-sparse array are there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "outcore/api.h"
#include "outcore/box.hpp"

namespace outcore {

/// Every axis of an array is cut at boundaries, so that tiles may be of different sizes. Those that are not
/// zero are numbered in row-major order of their indices.
class OUTCORE_API TileMap {
 public:
  static constexpr std::int64_t max_tiles = 1 << 24;  ///< zero ones among them

  /// `boundaries`: for each axis 0, ..., its extent, rising; 0 alone: an axis without elements. `nonzero`:
  /// for each tile, in row-major order. Throws Error(EINVAL) for anything else, and for more than max_tiles.
  TileMap(std::vector<std::vector<std::int64_t>> boundaries, std::vector<bool> nonzero);
  TileMap() = default;  ///< of rank 0, without tiles

  [[nodiscard]] const Extents& shape() const noexcept { return shape_; }  ///< in elements
  [[nodiscard]] const Extents& grid() const noexcept { return grid_; }    ///< tiles along each axis
  [[nodiscard]] const std::vector<std::vector<std::int64_t>>& boundaries() const noexcept {
    return boundaries_;
  }
  [[nodiscard]] std::int64_t count() const noexcept { return static_cast<std::int64_t>(tiles_.size()); }

  /// Throw Error(EINVAL) for an index outside the grid.
  [[nodiscard]] Box box(const Extents& tile) const;
  [[nodiscard]] std::int64_t number(const Extents& tile) const;  ///< -1 if the tile is zero

  [[nodiscard]] Extents tile(std::int64_t number) const;           ///< its index; `number` is asserted
  [[nodiscard]] std::int64_t elements(std::int64_t number) const;  ///< in the tile
  friend bool operator==(const TileMap&, const TileMap&) = default;

  /// As JSON: {"boundaries": [[0, 3], [0, 2, 5]], "nonzero": "c"}, the latter four tiles a digit.
  [[nodiscard]] std::string encode() const;
  /// What `encode` made, at the beginning of `text`; `used`: its length. Throws Error(EINVAL) for anything
  /// else.
  [[nodiscard]] static TileMap decode(const std::string& text, std::size_t& used);

 private:
  [[nodiscard]] std::int64_t position(const Extents& tile) const;
  [[nodiscard]] Extents index_of(std::int64_t position) const noexcept;

  std::vector<std::vector<std::int64_t>> boundaries_;
  Extents shape_, grid_;
  std::vector<std::int64_t> tiles_;  ///< positions of those that are there, rising
};

}  // namespace outcore
