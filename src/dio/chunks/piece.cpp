#include "dio/chunks/piece.hpp"

#include <algorithm>
#include <set>

namespace outcore::array {
namespace {

/// Whether `index` could be counted up, within `count`, leaving out the last dimensions.
bool next(Extents& index, const Extents& count, int dimensions) {
  for (int i = dimensions - 1; i >= 0; --i) {
    if (++index[i] < count[i]) return true;
    index[i] = 0;
  }
  return false;
}

}  // namespace

bool SteppedBox::fits(const Extents& array_shape) const noexcept {
  const int rank = array_shape.rank();
  if (box.begin.rank() != rank || box.end.rank() != rank || step.rank() != rank) return false;
  for (int i = 0; i < rank; ++i)
    if (box.begin[i] < 0 || box.begin[i] > box.end[i] || box.end[i] > array_shape[i] || step[i] < 1 ||
        step[i] > max_step)
      return false;
  return true;
}

Extents SteppedBox::shape() const noexcept {
  Extents shape = box.shape();
  for (int i = 0; i < shape.rank(); ++i) shape[i] = (shape[i] + step[i] - 1) / step[i];
  return shape;
}

SteppedBox SteppedBox::within(const Box& part, Extents& first) const noexcept {
  SteppedBox inside{intersection(box, part), step};
  first = box.begin;
  for (int i = 0; i < box.rank(); ++i) {
    first[i] = (inside.box.begin[i] - box.begin[i] + step[i] - 1) / step[i];
    inside.box.begin[i] = box.begin[i] + first[i] * step[i];
    inside.box.end[i] = std::max(inside.box.begin[i], inside.box.end[i]);
  }
  return inside;
}

void ChunkPiece::for_each_row(std::size_t element_bytes,
                              const std::function<void(std::int64_t, std::int64_t)>& visit) const {
  const int last = count.rank() - 1;
  const std::int64_t reach =
      (count[last] - 1) * stride_bytes[last] + static_cast<std::int64_t>(element_bytes);
  Extents index = Extents::filled(count.rank(), 0);
  do {
    std::int64_t begin = offset;
    for (int i = 0; i < last; ++i) begin += index[i] * stride_bytes[i];
    visit(begin, begin + reach);
  } while (next(index, count, last));
}

void for_each_piece(const ChunkGrid& grid, int component, const SteppedBox& section,
                    const std::function<void(const ChunkPiece&)>& visit) {
  const Extents chunk_stride = row_major(grid.chunk(), grid.element_bytes());
  grid.for_each_run(component, section.box, [&](const ChunkGrid::Run& run) {
    for (std::int64_t slot = run.first_slot; slot < run.first_slot + run.count; ++slot) {
      const Box chunk = grid.chunk_box(grid.chunk_at(component, slot));
      ChunkPiece piece{.slot = slot};
      const SteppedBox inside = section.within(chunk, piece.first);
      piece.count = inside.shape();
      if (piece.elements() == 0) continue;  // the steps pass over it
      piece.stride_bytes = chunk_stride;
      for (int i = 0; i < chunk.rank(); ++i) {
        piece.offset += (inside.box.begin[i] - chunk.begin[i]) * chunk_stride[i];
        if (piece.count[i] > 1) piece.stride_bytes[i] *= section.step[i];  // else of any size
      }
      piece.whole = piece.count == chunk.shape();
      visit(piece);
    }
  });
}

std::vector<int> components_of(const ChunkGrid& grid, const Box& box) {
  const Box chunks = grid.chunks_of(box);
  const Extents counts = chunks.shape();
  std::set<int> components;
  if (chunks.empty()) return {};
  Extents index = Extents::filled(counts.rank(), 0);
  do {
    std::int64_t chunk = 0;
    for (int i = 0; i < counts.rank(); ++i) chunk = chunk * grid.counts()[i] + chunks.begin[i] + index[i];
    components.insert(grid.place(chunk).component);
  } while (static_cast<int>(components.size()) < grid.components() && next(index, counts, counts.rank()));
  return {components.begin(), components.end()};
}

}  // namespace outcore::array
