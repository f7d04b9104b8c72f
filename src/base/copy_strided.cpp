// Copies between strided pieces of memory. Dimensions that are contiguous in both are joined, the innermost
// runs are copied at once, and transpositions are done in tiles of whole cache lines, in vector registers.
#include <algorithm>
#include <cstring>

#include "base/stream_copy.hpp"
#include "base/strided_plan.hpp"
#include "base/transpose_tile.hpp"
#include "outcore/box.hpp"

namespace outcore {
namespace {

constexpr std::size_t streamed_run_bytes = 256;  // shorter ones are mostly parts of lines
constexpr std::int64_t tile = 32;  // elements in each direction: two tiles fit into the first-level cache

using Axis = StridedAxis;

template <class Element>
void copy_row(std::byte* to, const std::byte* from, const Axis& axis) {
  const auto size = static_cast<std::int64_t>(sizeof(Element));
  if (axis.to == size && axis.from == size) {
    const std::size_t bytes = static_cast<std::size_t>(axis.count) * sizeof(Element);
    if (bytes >= streamed_run_bytes && StreamedCopies::wanted())
      stream_copy(to, from, bytes);
    else
      std::memcpy(to, from, bytes);
    return;
  }
  for (std::int64_t i = 0; i < axis.count; ++i)
    std::memcpy(to + i * axis.to, from + i * axis.from, sizeof(Element));
}

/// Two axes; the source runs along the first: tile by tile.
template <class Element>
void copy_tiles(std::byte* to, const std::byte* from, const Axis& outer, const Axis& inner) {
  for (std::int64_t i = 0; i < outer.count; i += tile)
    for (std::int64_t j = 0; j < inner.count; j += tile) {
      const std::int64_t i_end = std::min(i + tile, outer.count);
      const Axis part{std::min(tile, inner.count - j), inner.to, inner.from};
      for (std::int64_t row = i; row < i_end; ++row)
        copy_row<Element>(to + row * outer.to + j * inner.to, from + row * outer.from + j * inner.from, part);
    }
}

/// The same where the target is contiguous along `inner`, and the source along `outer`: lines of the source
/// are read once and lines of the target written once, in blocks whose pages and lines stay in reach.
template <class Element>
void transpose(std::byte* to, const std::byte* from, const Axis& outer, const Axis& inner) {
  constexpr std::int64_t line = transpose_tile_size<Element>, block = 8 * line;
  const std::int64_t rows = outer.count / line * line, columns = inner.count / line * line;
  const auto at = [](auto* memory, std::int64_t offset) { return memory + offset; };
  for (std::int64_t j_block = 0; j_block < columns; j_block += block)
    for (std::int64_t i = 0; i < rows; i += line)
      for (std::int64_t j = j_block; j < std::min(j_block + block, columns); j += line)
        transpose_tile<Element>(at(to, i * outer.to + j * inner.to), outer.to,
                                at(from, i * outer.from + j * inner.from), inner.from);
  copy_tiles<Element>(at(to, columns * inner.to), at(from, columns * inner.from),
                      {rows, outer.to, outer.from}, {inner.count - columns, inner.to, inner.from});
  copy_tiles<Element>(at(to, rows * outer.to), at(from, rows * outer.from),
                      {outer.count - rows, outer.to, outer.from}, inner);
}

template <class Element>
void copy_plane(std::byte* to, const std::byte* from, const Axis& outer, const Axis& inner) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Element));
  if (inner.to == size && outer.from == size)
    transpose<Element>(to, from, outer, inner);
  else
    copy_tiles<Element>(to, from, outer, inner);
}

template <class Element>
void copy_axes(std::byte* to, const std::byte* from, const StridedPlan& plan, int first) {
  const Axis& axis = plan.axes[static_cast<std::size_t>(first)];
  const int left = plan.rank - first;
  if (left == 1) return copy_row<Element>(to, from, axis);
  if (left == 2) {
    const Axis& inner = plan.axes[static_cast<std::size_t>(first + 1)];
    if (std::abs(axis.from) < std::abs(inner.from)) return copy_plane<Element>(to, from, axis, inner);
  }
  for (std::int64_t i = 0; i < axis.count; ++i)
    copy_axes<Element>(to + i * axis.to, from + i * axis.from, plan, first + 1);
}

template <class Element>
void copy(std::byte* to, const std::byte* from, StridedPlan plan) {
  if (plan.rank == 0) {
    std::memcpy(to, from, sizeof(Element));
    return;
  }
  plan.form_plane();
  copy_axes<Element>(to, from, plan, 0);
}

struct Bytes16 {
  std::byte bytes[16];
};

}  // namespace

void copy_strided(std::byte* to, const Extents& to_stride_bytes, const std::byte* from,
                  const Extents& from_stride_bytes, const Extents& count, std::size_t element_bytes) {
  assert(to_stride_bytes.rank() == count.rank() && from_stride_bytes.rank() == count.rank());
  for (const std::int64_t each : count.values())
    if (each <= 0) return;
  const StridedPlan plan(to_stride_bytes, from_stride_bytes, count);
  const StreamedCopies streams(count.product() * static_cast<std::int64_t>(element_bytes));
  switch (element_bytes) {
    case 1:
      return copy<std::uint8_t>(to, from, plan);
    case 2:
      return copy<std::uint16_t>(to, from, plan);
    case 4:
      return copy<std::uint32_t>(to, from, plan);
    case 8:
      return copy<std::uint64_t>(to, from, plan);
    default:
      assert(element_bytes == 16);
      return copy<Bytes16>(to, from, plan);
  }
}

}  // namespace outcore
