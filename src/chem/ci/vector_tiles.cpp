#include "chem/ci/vector_tiles.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/thread_team.hpp"

namespace outcore::chem::ci {
namespace {

/// Whether a tile of a folded vector holds both of its halves.
bool on_diagonal(const TilePlace& tile) {
  return tile.row == tile.column;
}

void check(const TilePlace& tile, std::size_t elements, int parity) {
  const auto all = std::int64_t(elements);
  if (parity && on_diagonal(tile) && tile.rows != tile.columns)
    throw std::invalid_argument("a tile of " + std::to_string(tile.rows) + " x " +
                                std::to_string(tile.columns) + " on the diagonal is no square");
  const bool fits = tile.offset >= 0 && tile.offset <= all && tile.rows >= 0 && tile.columns >= 0 &&
                    (tile.rows == 0 || tile.columns <= (all - tile.offset) / tile.rows);
  if (!fits)
    throw std::invalid_argument(
        "a tile of " + std::to_string(tile.rows) + " x " + std::to_string(tile.columns) + " from element " +
        std::to_string(tile.offset) + " on is not in a vector of " + std::to_string(all));
}

/// each(tile, memory of the thread) for all tiles, each in one thread.
template <class Memory, class Each>
void each_tile(std::span<const TilePlace> tiles, std::size_t elements, int parity, int threads,
               const Each& each) {
  for (const TilePlace& tile : tiles) check(tile, elements, parity);
  std::atomic<std::size_t> next{0};
  in_team(int(std::clamp<std::size_t>(tiles.size(), 1, std::size_t(std::max(threads, 1)))), [&](int) {
    Memory memory;
    for (std::size_t n; (n = next++) < tiles.size();) each(tiles[n], memory);
  });
}

struct Nothing {};

}  // namespace

template <class Element>
void load_tiles(Panel& panel, std::span<const Element> vector, std::span<const TilePlace> tiles, int parity,
                int threads) {
  each_tile<Nothing>(tiles, vector.size(), parity, threads, [&](const TilePlace& tile, Nothing&) {
    const View<const Element> view{vector.data() + tile.offset, tile.rows, tile.columns, tile.columns, 1};
    if (panel.transposed()) return panel.load(tile.column, tile.row, view.transposed(), 1);
    panel.load(tile.row, tile.column, view, 1);
    if (parity && !on_diagonal(tile)) panel.load(tile.column, tile.row, view.transposed(), parity);
  });
}

template <class Element>
void add_to_tiles(const Panel& panel, std::span<Element> vector, std::span<const TilePlace> tiles, int parity,
                  int threads) {
  using Memory = std::vector<Element>;
  each_tile<Memory>(tiles, vector.size(), parity, threads, [&](const TilePlace& tile, Memory& memory) {
    const auto size = std::size_t(tile.rows * tile.columns);
    memory.assign(size, Element(0));
    const View<Element> sum{memory.data(), tile.rows, tile.columns, tile.columns, 1};
    Element* to = vector.data() + tile.offset;
    if (panel.transposed()) {
      panel.unload(tile.column, tile.row, sum.transposed(), 1);
    } else {
      panel.unload(tile.row, tile.column, sum, 1);
      if (parity && on_diagonal(tile)) {  // exactly (anti)symmetric
        const std::int64_t n = tile.rows;
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < n; ++j)
            to[i * n + j] +=
                memory[std::size_t(i * n + j)] + Element(parity) * memory[std::size_t(j * n + i)];
        return;
      }
      if (parity) panel.unload(tile.column, tile.row, sum.transposed(), parity);
    }
    for (std::size_t i = 0; i < size; ++i) to[i] += memory[i];
  });
}

template void load_tiles(Panel&, std::span<const double>, std::span<const TilePlace>, int, int);
template void load_tiles(Panel&, std::span<const float>, std::span<const TilePlace>, int, int);
template void add_to_tiles(const Panel&, std::span<double>, std::span<const TilePlace>, int, int);
template void add_to_tiles(const Panel&, std::span<float>, std::span<const TilePlace>, int, int);

}  // namespace outcore::chem::ci
