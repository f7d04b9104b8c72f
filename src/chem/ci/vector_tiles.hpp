// Tiles of a vector that lies in memory, one after another, from and to panels.
#pragma once

#include <array>
#include <span>

#include "chem/ci/panel.hpp"

namespace outcore::chem::ci {

/// A tile [alpha strings][beta strings]: elements before it in the vector, indices of its first strings,
/// shape.
struct TilePlace {
  std::int64_t offset, row, column, rows, columns;
};

/// What the panel has of these tiles. `parity`: not 0 for folded vectors, whose tiles are those on and below
/// the diagonal. Throws std::invalid_argument for a tile that is not in the vector, or not in one sector.
template <class Element>
OUTCORE_SIBLING void load_tiles(Panel& panel, std::span<const Element> vector,
                                std::span<const TilePlace> tiles, int parity, int threads);

/// vector += T, the panel, in these tiles; of folded vectors T + parity T^T. The sum of both is made before
/// it is added. Throws as load_tiles.
template <class Element>
OUTCORE_SIBLING void add_to_tiles(const Panel& panel, std::span<Element> vector,
                                  std::span<const TilePlace> tiles, int parity, int threads);

}  // namespace outcore::chem::ci
