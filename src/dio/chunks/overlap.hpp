// Overlaps of slices of an array with each of its chunks.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "dio/chunks/grid.hpp"
#include "outcore/box.hpp"

namespace outcore::dio {

/// The elements of slices that lie in one chunk, with strides in the memory of the chunk.
struct ChunkOverlap {
  std::int64_t slot = 0;
  Extents first{};  ///< index of its first element in the slices
  Extents count{};
  std::int64_t offset = 0;  ///< of its first element in the chunk, in bytes
  Extents stride_bytes{};   ///< in the chunk
  bool whole = false;       ///< whether it has all elements of the chunk that are in the array

  [[nodiscard]] std::int64_t elements() const noexcept { return count.product(); }
  /// Calls `visit(begin, end)` for the bytes of each row, between its first and last element.
  void for_each_row(std::size_t element_bytes,
                    const std::function<void(std::int64_t begin, std::int64_t end)>& visit) const;
};

/// Calls `visit` for the overlaps in a component, in rising order of slots. Owner and client compute the same
/// list, so it is not sent. Throws Error(EINVAL) for a box that is not inside the array.
void for_each_overlap(const ChunkGrid& grid, int component, const Slices& slices,
                      const std::function<void(const ChunkOverlap&)>& visit);
/// The components with chunks that meet the box, in rising order.
[[nodiscard]] std::vector<int> components_of(const ChunkGrid& grid, const Box& box);

}  // namespace outcore::dio
