#include "dio/chunks/overlap.hpp"

#include <algorithm>
#include <set>

namespace outcore::dio {
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

void ChunkOverlap::for_each_row(std::size_t element_bytes,
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

void for_each_overlap(const ChunkGrid& grid, int component, const Slices& slices,
                      const std::function<void(const ChunkOverlap&)>& visit) {
  const Extents chunk_stride = row_major(grid.chunk(), grid.element_bytes());
  grid.for_each_slot_range(component, slices.box, [&](const store::SlotRange& range) {
    for (std::int64_t slot = range.first_slot; slot < range.end(); ++slot) {
      const Box chunk = grid.chunk_box(grid.chunk_at(component, slot));
      ChunkOverlap overlap{.slot = slot};
      const Slices inside = slices.within(chunk, overlap.first);
      overlap.count = inside.shape();
      if (overlap.elements() == 0) continue;  // the steps pass over it
      overlap.stride_bytes = chunk_stride;
      for (int i = 0; i < chunk.rank(); ++i) {
        overlap.offset += (inside.box.begin[i] - chunk.begin[i]) * chunk_stride[i];
        if (overlap.count[i] > 1) overlap.stride_bytes[i] *= slices.step[i];  // else of any size
      }
      overlap.whole = overlap.count == chunk.shape();
      visit(overlap);
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
    components.insert(grid.locate(chunk).component);
  } while (static_cast<int>(components.size()) < grid.components() && next(index, counts, counts.rank()));
  return {components.begin(), components.end()};
}

}  // namespace outcore::dio
