// Moves tiles of a vector that lies in memory, one tile after another, from and to panels.
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

/// Loads the elements that the panel has from these tiles. `parity`: not 0 for folded vectors, which have
/// only the tiles on and below the diagonal. Throws std::invalid_argument for a tile that is not in the
/// vector, or not in one sector.
template <class Element>
OUTCORE_SIBLING void load_tiles(Panel& panel, std::span<const Element> vector,
                                std::span<const TilePlace> tiles, int parity, int threads);

/// vector += T in these tiles, T being the panel; for folded vectors T + parity T^T, which is summed before
/// it is added. Throws as load_tiles.
template <class Element>
OUTCORE_SIBLING void add_to_tiles(const Panel& panel, std::span<Element> vector,
                                  std::span<const TilePlace> tiles, int parity, int threads);

}  // namespace outcore::chem::ci
