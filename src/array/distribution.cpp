#include "outcore/distribution.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "outcore/error.hpp"
#include "outcore/world.hpp"

namespace outcore {
namespace {

[[noreturn]] void refuse(const Extents& shape, const std::string& detail) {
  throw Error(EINVAL, {.attempted = "distribution of an array of shape " + shape.text(), .detail = detail});
}

void check_shape(const Extents& shape, int processes) {
  if (shape.rank() == 0) refuse(shape, "it needs at least one dimension");
  std::int64_t volume = 1;
  for (const std::int64_t extent : shape.values()) {
    if (extent < 0) refuse(shape, "a dimension is negative");
    if (__builtin_mul_overflow(volume, std::max<std::int64_t>(extent, 1), &volume))
      refuse(shape, "it has more elements than 64 bits can count");
  }
  if (processes < 1) refuse(shape, std::to_string(processes) + " processes");
}

/// The grid of `processes` (or of the next smaller number that has a grid), with no dimension longer than
/// `limit`, whose patches have the least surface for their volume; among equal ones the grid that cuts the
/// first dimensions.
class GridSearch {
 public:
  explicit GridSearch(const Extents& limit) : limit_(limit), trial_(limit), best_(limit) {}

  Extents run(int processes) {
    std::int64_t most = 1;  // processes that can have elements
    for (int i = 0; i < limit_.rank(); ++i)
      most = std::min<std::int64_t>(processes, most * std::min<std::int64_t>(processes, limit(i)));
    for (std::int64_t count = most;; --count) {
      best_cost_ = std::numeric_limits<double>::infinity();
      search(0, count, 0);
      if (best_cost_ < std::numeric_limits<double>::infinity()) return best_;  // 1 process always fits
    }
  }

 private:
  [[nodiscard]] std::int64_t limit(int i) const noexcept { return std::max<std::int64_t>(limit_[i], 1); }

  void search(int i, std::int64_t left, double cost) {
    if (cost >= best_cost_) return;
    const auto take = [&](std::int64_t cuts) {
      trial_[i] = cuts;
      const double more = cost + static_cast<double>(cuts) / static_cast<double>(limit(i));
      if (i + 1 < limit_.rank()) return search(i + 1, left / cuts, more);
      if (more >= best_cost_) return;
      best_cost_ = more;
      best_ = trial_;
    };
    if (i + 1 == limit_.rank()) {
      if (left <= limit(i)) take(left);
      return;
    }
    for (std::int64_t cuts = std::min(left, limit(i)); cuts >= 1; --cuts)
      if (left % cuts == 0) take(cuts);
  }

  Extents limit_, trial_, best_;
  double best_cost_ = 0;
};

}  // namespace

// ---- one dimension ----

std::int64_t Distribution::Axis::begin(std::int64_t block) const noexcept {
  if (!begins.empty()) return begins[static_cast<std::size_t>(block)];
  return std::min(block * size + std::min(block, longer), extent);
}

std::int64_t Distribution::Axis::block_of(std::int64_t index) const noexcept {
  if (!begins.empty()) return std::upper_bound(begins.begin(), begins.end() - 1, index) - begins.begin() - 1;
  const std::int64_t in_longer = longer * (size + 1);
  return index < in_longer ? index / (size + 1) : longer + (index - in_longer) / size;
}

std::int64_t Distribution::Axis::local_extent(std::int64_t part) const noexcept {
  if (part >= blocks) return 0;
  const std::int64_t before = (blocks - part - 1) / parts;  // full blocks of this part, all but its last
  const std::int64_t last = part + before * parts;
  return before * size + begin(last + 1) - begin(last);
}

// ---- making them ----

Distribution::Distribution(Kind kind, const Extents& shape, int processes)
    : kind_(kind), processes_(processes), shape_(shape), grid_(Extents::filled(shape.rank(), 1)) {}

Distribution Distribution::regular(const Extents& shape, int processes) {
  check_shape(shape, processes);
  Distribution made(Kind::regular, shape, processes);
  made.grid_ = GridSearch(shape).run(processes);
  for (int i = 0; i < shape.rank(); ++i) {
    Axis& axis = made.axes_[static_cast<std::size_t>(i)];
    axis.blocks = made.grid_[i];
    axis.size = shape[i] / axis.blocks;
    axis.longer = shape[i] % axis.blocks;
  }
  made.finish();
  return made;
}

Distribution Distribution::irregular(const Extents& shape, int processes,
                                     std::span<const std::vector<std::int64_t>> begins) {
  check_shape(shape, processes);
  if (static_cast<int>(begins.size()) != shape.rank())
    refuse(shape, "block boundaries of " + std::to_string(begins.size()) + " dimensions were given");
  Distribution made(Kind::irregular, shape, processes);
  std::int64_t cells = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    const auto& from = begins[static_cast<std::size_t>(i)];
    const std::string where = "dimension " + std::to_string(i) + ": ";
    if (from.empty() || from.front() != 0) refuse(shape, where + "the first block does not begin at 0");
    for (std::size_t k = 1; k < from.size(); ++k)
      if (from[k] <= from[k - 1] || from[k] >= shape[i])
        refuse(shape, where + "block " + std::to_string(k) + " begins at " + std::to_string(from[k]) +
                          ", which is not after the one before and inside");
    Axis& axis = made.axes_[static_cast<std::size_t>(i)];
    axis.blocks = made.grid_[i] = static_cast<std::int64_t>(from.size());
    axis.begins = from;
    axis.begins.push_back(shape[i]);
    cells *= std::min<std::int64_t>(axis.blocks, std::int64_t{processes} + 1);  // no overflow
    if (cells > processes)
      refuse(shape, "it has more blocks than there are processes (" + std::to_string(processes) + ")");
  }
  made.finish();
  return made;
}

Distribution Distribution::block_cyclic(const Extents& shape, int processes, const Extents& block,
                                        const std::optional<Extents>& grid) {
  check_shape(shape, processes);
  if (block.rank() != shape.rank()) refuse(shape, "blocks of shape " + block.text());
  Extents blocks = shape;
  for (int i = 0; i < shape.rank(); ++i) {
    if (block[i] < 1) refuse(shape, "blocks of shape " + block.text());
    blocks[i] = shape[i] / block[i] + (shape[i] % block[i] != 0);
  }
  Distribution made(Kind::block_cyclic, shape, processes);
  made.grid_ = grid ? *grid : GridSearch(blocks).run(processes);
  std::int64_t cells = 1;
  bool fits = made.grid_.rank() == shape.rank();
  for (const std::int64_t each : made.grid_.values()) {
    fits = fits && each >= 1 && each <= processes;
    if (fits) cells *= each;
    fits = fits && cells <= processes;
  }
  if (!fits) refuse(shape, "grid " + made.grid_.text() + " for " + std::to_string(processes) + " processes");
  for (int i = 0; i < shape.rank(); ++i) {
    Axis& axis = made.axes_[static_cast<std::size_t>(i)];
    axis.blocks = blocks[i];
    axis.size = block[i];
  }
  made.finish();
  return made;
}

/// Sets the members that follow from blocks and grid.
void Distribution::finish() {
  for (int i = 0; i < shape_.rank(); ++i) {
    Axis& axis = axes_[static_cast<std::size_t>(i)];
    axis.extent = shape_[i];
    axis.parts = grid_[i];
    axis.longest_local = axis.local_extent(0);
    for (std::size_t k = 1; k < axis.begins.size(); ++k)
      axis.longest_local = std::max(axis.longest_local, axis.begins[k] - axis.begins[k - 1]);
  }
}

// ---- questions ----

Extents Distribution::block() const noexcept {
  Extents block = shape_;
  for (int i = 0; i < shape_.rank(); ++i)
    block[i] = kind_ == Kind::block_cyclic ? axis(i).size : axis(i).longest_local;
  return block;
}

std::string Distribution::text() const {
  switch (kind_) {
    case Kind::regular:
      return "regular, grid " + grid_.text();
    case Kind::irregular:
      return "irregular, grid " + grid_.text();
    case Kind::block_cyclic:
      break;
  }
  return "block_cyclic, blocks " + block().text() + ", grid " + grid_.text();
}

std::int64_t Distribution::local_elements_max() const noexcept {
  std::int64_t elements = 1;
  for (int i = 0; i < shape_.rank(); ++i) elements *= axis(i).longest_local;
  return elements;
}

Distribution::Location Distribution::locate(std::span<const std::int64_t> index) const noexcept {
  std::int64_t process = 0, element = 0;
  for (int i = 0; i < shape_.rank(); ++i) {
    const Axis& one = axis(i);
    const std::int64_t at = index[static_cast<std::size_t>(i)];
    const std::int64_t block = one.block_of(at), part = block % one.parts;
    process = process * one.parts + part;
    element = element * one.local_extent(part) + block / one.parts * one.size + at - one.begin(block);
  }
  return {static_cast<int>(process), element};
}

int Distribution::owner(const Extents& index) const {
  bool inside = index.rank() == shape_.rank();
  for (int i = 0; inside && i < index.rank(); ++i) inside = index[i] >= 0 && index[i] < shape_[i];
  if (!inside) refuse(shape_, "index " + index.text() + " is outside");
  return locate(index.values()).process;
}

/// Coordinates of a process in the grid; none for a process beyond it.
std::optional<Extents> Distribution::coordinates(int process) const noexcept {
  if (process >= grid_.product()) return std::nullopt;
  Extents at = grid_;
  std::int64_t rest = process;
  for (int i = grid_.rank() - 1; i >= 0; --i) {
    at[i] = rest % grid_[i];
    rest /= grid_[i];
  }
  return at;
}

Box Distribution::patch(int process) const {
  if (kind_ == Kind::block_cyclic) refuse(shape_, "what a process holds of a block-cyclic array is no box");
  if (process < 0 || process >= processes_) refuse(shape_, "there is no process " + std::to_string(process));
  Box box = Box::whole(Extents::filled(shape_.rank(), 0));
  if (const auto at = coordinates(process))
    for (int i = 0; i < shape_.rank(); ++i) {
      box.begin[i] = axis(i).begin((*at)[i]);
      box.end[i] = axis(i).begin((*at)[i] + 1);
    }
  return box;
}

Extents Distribution::local_shape(int process) const {
  if (process < 0 || process >= processes_) refuse(shape_, "there is no process " + std::to_string(process));
  Extents shape = Extents::filled(shape_.rank(), 0);
  if (const auto at = coordinates(process))
    for (int i = 0; i < shape_.rank(); ++i) shape[i] = axis(i).local_extent((*at)[i]);
  return shape;
}

void Distribution::walk(const Box& box, const Extents& first_block, const Extents& block_step,
                        const VisitPart& visit) const {
  Extents block = first_block;
  Box part = box;
  for (;;) {
    std::int64_t process = 0, element = 0;
    for (int i = 0; i < shape_.rank(); ++i) {
      const Axis& one = axis(i);
      const std::int64_t begin = one.begin(block[i]), owner = block[i] % one.parts;
      part.begin[i] = std::max(box.begin[i], begin);
      part.end[i] = std::min(box.end[i], one.begin(block[i] + 1));
      process = process * one.parts + owner;
      element = element * one.local_extent(owner) + block[i] / one.parts * one.size + part.begin[i] - begin;
    }
    visit(static_cast<int>(process), part, element);
    int i = shape_.rank() - 1;
    for (; i >= 0; --i) {
      block[i] += block_step[i];
      if (block[i] < axis(i).blocks && axis(i).begin(block[i]) < box.end[i]) break;
      block[i] = first_block[i];
    }
    if (i < 0) return;
  }
}

void Distribution::for_each_part(const Box& box, const VisitPart& visit) const {
  assert(Box::whole(shape_).contains(box));
  if (box.empty()) return;
  Extents first = box.begin;
  for (int i = 0; i < box.rank(); ++i) first[i] = axis(i).block_of(box.begin[i]);
  walk(box, first, Extents::filled(box.rank(), 1), visit);
}

void Distribution::for_each_part_of(int process, const Box& box, const VisitPart& visit) const {
  assert(Box::whole(shape_).contains(box));
  const auto at = coordinates(process);
  if (box.empty() || !at) return;
  Extents first = box.begin;
  for (int i = 0; i < box.rank(); ++i) {
    const Axis& one = axis(i);
    const std::int64_t block = one.block_of(box.begin[i]);
    first[i] = block + ((*at)[i] - block % one.parts + one.parts) % one.parts;
    if (first[i] >= one.blocks || one.begin(first[i]) >= box.end[i]) return;
  }
  walk(box, first, grid_, visit);
}

bool operator==(const Distribution& a, const Distribution& b) noexcept {
  return a.shape_ == b.shape_ && a.grid_ == b.grid_ && a.axes_ == b.axes_;
}

std::uint64_t Distribution::fingerprint() const {
  const auto add = [](std::uint64_t seed, std::span<const std::int64_t> values) {
    return outcore::fingerprint(std::as_bytes(values), seed);
  };
  const std::int64_t head[] = {static_cast<std::int64_t>(kind_), processes_, shape_.rank()};
  std::uint64_t value = add(outcore::fingerprint({}), head);
  value = add(add(value, shape_.values()), grid_.values());
  for (int i = 0; i < shape_.rank(); ++i) {
    const std::int64_t sizes[] = {axis(i).blocks, axis(i).size, axis(i).longer};
    value = add(add(value, sizes), axis(i).begins);
  }
  return value;
}

}  // namespace outcore
