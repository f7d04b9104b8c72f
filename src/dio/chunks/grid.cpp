#include "dio/chunks/grid.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <limits>
#include <string>

#include "outcore/error.hpp"

namespace outcore::dio {
namespace {

constexpr std::int64_t max_bytes = std::int64_t{1} << 62;
/// The time of a disk for a chunk, relative to that for one of its eight blocks.
constexpr std::int64_t block_times = 4;

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0);
}

[[noreturn]] void refuse(const std::string& attempted, const std::string& detail) {
  throw Error(EINVAL, {.attempted = attempted, .detail = detail});
}

/// The product, or max_bytes + 1 if it is larger than max_bytes.
std::int64_t limited_product(const Extents& factors, std::int64_t first) {
  std::int64_t product = first;
  for (const std::int64_t factor : factors.values())
    if (__builtin_mul_overflow(product, factor, &product) || product > max_bytes) return max_bytes + 1;
  return product;
}

bool all_from(std::int64_t least, const Extents& extents) {
  return std::ranges::all_of(extents.values(), [least](std::int64_t value) { return value >= least; });
}

/// The dimension of the chunk that is smallest relative to the section and can be doubled; -1: none can.
int dimension_to_grow(const Extents& chunk, const Extents& shape, const Extents& section,
                      std::int64_t max_elements) {
  int found = -1;
  double smallest = std::numeric_limits<double>::infinity();
  for (int i = chunk.rank() - 1; i >= 0; --i) {
    const std::int64_t grown = std::min(2 * chunk[i], shape[i]);
    if (grown == chunk[i] || chunk.product() / chunk[i] > max_elements / grown) continue;
    const double side = static_cast<double>(chunk[i]) / static_cast<double>(section[i]);
    if (side < smallest) {
      smallest = side;
      found = i;
    }
  }
  return found;
}

/// Sides for the same number of chunks, as equal as possible, so that chunks at the edge are not mostly
/// empty.
std::int64_t balanced(std::int64_t side, std::int64_t length) {
  constexpr std::int64_t multiple = 8;
  const std::int64_t equal = divide_up(length, divide_up(length, side));
  return std::min(side, divide_up(equal, multiple) * multiple);
}

}  // namespace

Extents choose_chunk(const Extents& its_shape, std::size_t element_bytes, const Extents& typical_section,
                     std::int64_t target_bytes) {
  const std::string attempted = "choice of chunks for an array of shape " + its_shape.text();
  if (its_shape.rank() == 0 || !all_from(0, its_shape)) refuse(attempted, "no side may be negative");
  Extents shape = its_shape;  // an array without elements gets a chunk shape as if it had some
  for (int i = 0; i < shape.rank(); ++i) shape[i] = std::max<std::int64_t>(shape[i], 1);
  if (element_bytes == 0) refuse(attempted, "elements of 0 bytes");
  const bool known = typical_section.rank() > 0;
  if (known && (typical_section.rank() != shape.rank() || !all_from(1, typical_section)))
    refuse(attempted, "the typical section " + typical_section.text() + " is none of it");

  Extents section = known ? typical_section : Extents::filled(shape.rank(), 1);
  if (!known) section[0] = block_times;
  if (known)
    for (int i = 0; i < shape.rank(); ++i) section[i] = std::min(section[i], shape[i]);
  const std::int64_t max_elements =
      std::max<std::int64_t>(1, target_bytes / static_cast<std::int64_t>(element_bytes));
  Extents chunk = Extents::filled(shape.rank(), 1);
  for (;;) {
    const int i = dimension_to_grow(chunk, shape, section, max_elements);
    if (i < 0) break;
    chunk[i] = std::min(2 * chunk[i], shape[i]);
  }
  for (int i = 0; i < shape.rank(); ++i) chunk[i] = balanced(chunk[i], shape[i]);
  return chunk;
}

ChunkGrid::ChunkGrid(const Extents& shape, const Extents& chunk, std::size_t element_bytes, int components,
                     std::int64_t group)
    : shape_(shape),
      chunk_(chunk),
      counts_(shape),
      element_bytes_(element_bytes),
      components_(components),
      group_(group) {
  const std::string attempted = "array of shape " + shape.text() + " in chunks of " + chunk.text();
  if (shape.rank() == 0 || shape.rank() != chunk.rank())
    refuse(attempted, "one to " + std::to_string(max_rank) + " dimensions are needed, as many in both");
  if (!all_from(0, shape) || !all_from(1, chunk))
    refuse(attempted, "no side may be negative, and those of chunks must be at least 1");
  if (element_bytes == 0 || element_bytes > static_cast<std::size_t>(max_bytes))
    refuse(attempted, "elements of " + std::to_string(element_bytes) + " bytes");
  if (components < 1) refuse(attempted, std::to_string(components) + " components");
  if (group < 1 || group > max_group)
    refuse(attempted, "groups of " + std::to_string(group) + " chunks; 1 to " + std::to_string(max_group) +
                          " are possible");
  for (int i = 0; i < shape.rank(); ++i) counts_[i] = divide_up(shape[i], chunk[i]);
  const std::int64_t one = limited_product(chunk, static_cast<std::int64_t>(element_bytes));
  if (one > max_bytes || limited_product(counts_, one) > max_bytes) refuse(attempted, "more than 2^62 bytes");
  chunks_ = counts_.product();
}

std::int64_t ChunkGrid::chunk_bytes() const noexcept {
  return chunk_.product() * static_cast<std::int64_t>(element_bytes_);
}

std::int64_t ChunkGrid::slots(int component) const noexcept {
  assert(component >= 0 && component < components_);
  // Groups are dealt out in turn; the last group may have fewer chunks.
  const std::int64_t whole = chunks_ / group_, rest = chunks_ % group_;
  const std::int64_t mine = whole / components_ + (component < whole % components_);
  return mine * group_ + (component == whole % components_ ? rest : 0);
}

ChunkGrid::Location ChunkGrid::locate(std::int64_t chunk) const noexcept {
  assert(chunk >= 0 && chunk < chunks_);
  const std::int64_t group = chunk / group_;
  return {static_cast<int>(group % components_), group / components_ * group_ + chunk % group_};
}

std::int64_t ChunkGrid::chunk_at(int component, std::int64_t slot) const noexcept {
  assert(slot >= 0 && slot < slots(component));
  return (slot / group_ * components_ + component) * group_ + slot % group_;
}

std::int64_t ChunkGrid::first_slot(int component, std::int64_t chunk) const noexcept {
  assert(chunk >= 0 && component >= 0 && component < components_);
  const std::int64_t group = chunk / group_, row = group / components_ * group_;
  const std::int64_t its = group % components_;
  const std::int64_t slot = component == its ? row + chunk % group_ : component > its ? row : row + group_;
  return std::min(slot, slots(component));
}

std::int64_t ChunkGrid::chunk_holding(const Extents& element) const noexcept {
  assert(element.rank() == shape_.rank());
  std::int64_t number = 0;
  for (int i = 0; i < shape_.rank(); ++i) {
    assert(element[i] >= 0 && element[i] < shape_[i]);
    number = number * counts_[i] + element[i] / chunk_[i];
  }
  return number;
}

Box ChunkGrid::chunk_box(std::int64_t chunk) const noexcept {
  assert(chunk >= 0 && chunk < chunks_);
  Box box{shape_, shape_};
  for (int i = shape_.rank() - 1; i >= 0; --i) {
    box.begin[i] = chunk % counts_[i] * chunk_[i];
    box.end[i] = std::min(box.begin[i] + chunk_[i], shape_[i]);
    chunk /= counts_[i];
  }
  return box;
}

Box ChunkGrid::chunks_of(const Box& box) const noexcept {
  Box chunks{Extents::filled(shape_.rank(), 0), Extents::filled(shape_.rank(), 0)};
  if (box.empty()) return chunks;
  for (int i = 0; i < shape_.rank(); ++i) {
    chunks.begin[i] = box.begin[i] / chunk_[i];
    chunks.end[i] = divide_up(box.end[i], chunk_[i]);
  }
  return chunks;
}

namespace {

/// Joins ranges of slots that follow one another.
class SlotRangeJoiner {
 public:
  explicit SlotRangeJoiner(const std::function<void(const store::SlotRange&)>& visit) : visit_(visit) {}

  void add(std::int64_t first_slot, std::int64_t count) {
    if (range_.end() != first_slot) {
      flush();
      range_ = {first_slot, 0};
    }
    range_.count += count;
  }

  void flush() {
    if (range_.count > 0) visit_(range_);
    range_.count = 0;
  }

 private:
  const std::function<void(const store::SlotRange&)>& visit_;
  store::SlotRange range_;
};

/// Calls `visit(first, end)` for the ranges of chunk numbers in a box of the grid, in rising order.
template <class Visit>
void for_each_range(const Extents& counts, const Box& chunks, Visit visit) {
  // A dimension that is covered in full joins with the one before it to one range.
  int last = counts.rank() - 1;
  std::int64_t inner = 1;
  while (last > 0 && chunks.begin[last] == 0 && chunks.end[last] == counts[last]) inner *= counts[last--];
  Extents index = chunks.begin;
  const std::int64_t length = (chunks.end[last] - chunks.begin[last]) * inner;
  for (;;) {
    std::int64_t first = 0;
    for (int i = 0; i <= last; ++i) first = first * counts[i] + index[i];
    visit(first * inner, first * inner + length);
    int i = last - 1;
    while (i >= 0 && ++index[i] == chunks.end[i]) {
      index[i] = chunks.begin[i];
      --i;
    }
    if (i < 0) return;
  }
}

}  // namespace

void ChunkGrid::for_each_slot_range(int component, const Box& box,
                                    const std::function<void(const store::SlotRange&)>& visit) const {
  if (box.rank() != shape_.rank() || !Box::whole(shape_).contains(box) || component < 0 ||
      component >= components_)
    refuse("walk through box " + box.text() + " of an array of shape " + shape_.text(),
           "it does not lie in the array, or there is no component " + std::to_string(component));
  if (box.empty()) return;
  SlotRangeJoiner ranges(visit);
  for_each_range(counts_, chunks_of(box), [&](std::int64_t first, std::int64_t end) {
    // Of the groups of this range, the component has every components_-th.
    const std::int64_t group = first / group_;
    const std::int64_t ahead = (component - group % components_ + components_) % components_;
    for (std::int64_t mine = group + ahead; mine * group_ < end; mine += components_) {
      const std::int64_t from = std::max(first, mine * group_), to = std::min(end, (mine + 1) * group_);
      ranges.add(locate(from).slot, to - from);
    }
  });
  ranges.flush();
}

std::int64_t ChunkGrid::count(int component, const Box& box) const {
  std::int64_t slots = 0;
  for_each_slot_range(component, box, [&](const store::SlotRange& range) { slots += range.count; });
  return slots;
}

}  // namespace outcore::dio
