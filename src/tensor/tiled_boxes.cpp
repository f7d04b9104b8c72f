#include "tensor/tiled_boxes.hpp"

#include <algorithm>
#include <cerrno>
#include <complex>
#include <cstring>
#include <numeric>
#include <utility>

#include "outcore/error.hpp"
#include "tensor/tiles.hpp"

namespace outcore::tensor {
namespace {

/// An element of the type.
struct Number {
  alignas(16) std::byte bytes[16];
  Number(ElementType type, int value) {
    visit(type, [&](auto zero) {
      zero = static_cast<decltype(std::real(zero))>(value);
      std::memcpy(bytes, &zero, sizeof zero);
    });
  }
};

bool is_row_major(const Strided& memory, const Extents& shape, std::size_t element_bytes) {
  const Extents wanted = row_major(shape, element_bytes);
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != 1 && memory.stride_bytes[axis] != wanted[axis]) return false;
  return true;
}

/// Strides of a tile in the memory of the stored one, which is row-major.
Extents strides_in(const TileTable::Image& image, const Extents& shape, std::size_t element_bytes) {
  Extents stored = shape, result = shape;
  for (int axis = 0; axis < shape.rank(); ++axis)
    stored[image.axes[static_cast<std::size_t>(axis)]] = shape[axis];
  const Extents strides = row_major(stored, element_bytes);
  for (int axis = 0; axis < shape.rank(); ++axis)
    result[axis] = strides[image.axes[static_cast<std::size_t>(axis)]];
  return result;
}

std::byte* at(const Strided& memory, const Extents& place) {
  std::byte* data = memory.data;
  for (int axis = 0; axis < place.rank(); ++axis) data += place[axis] * memory.stride_bytes[axis];
  return data;
}

}  // namespace

// ---- the table ----

Box TileTable::tiles_of(const Box& box) const {
  Box tiles = box;
  for (int axis = 0; axis < rank(); ++axis) {
    const auto& cuts = cuts_[static_cast<std::size_t>(axis)];
    const auto number = [&](std::int64_t place) {
      const auto found = std::lower_bound(cuts.begin(), cuts.end(), place);
      if (found == cuts.end() || *found != place)
        throw Error(EINVAL, {.attempted = "use the box " + box.text(), .detail = "it cuts tiles"});
      return found - cuts.begin();
    };
    tiles.begin[axis] = number(box.begin[axis]);
    tiles.end[axis] = number(box.end[axis]);
  }
  return tiles;
}

template <class Visit>
void TileTable::each_tile(const Box& box, const Visit& visit) const {
  const Box tiles = tiles_of(box);
  if (tiles.empty()) return;
  Extents tile = tiles.begin, place = tile, shape = tile;
  for (;;) {
    std::int64_t index = 0;
    for (int axis = 0; axis < rank(); ++axis) {
      const auto& cuts = cuts_[static_cast<std::size_t>(axis)];
      const auto i = static_cast<std::size_t>(tile[axis]);
      index = index * static_cast<std::int64_t>(cuts.size() - 1) + tile[axis];
      place[axis] = cuts[i] - box.begin[axis];
      shape[axis] = cuts[i + 1] - cuts[i];
    }
    const Source& source = sources_[static_cast<std::size_t>(index)];
    if (source.number >= 0)
      visit(source.number, images_[static_cast<std::size_t>(source.image)], source.image == 0, place, shape);
    int axis = rank() - 1;
    while (axis >= 0 && ++tile[axis] == tiles.end[axis]) {
      tile[axis] = tiles.begin[axis];
      --axis;
    }
    if (axis < 0) return;
  }
}

TileTable::TileTable(std::vector<std::vector<std::int64_t>> cuts, std::vector<Source> sources,
                     std::vector<Image> images)
    : cuts_(std::move(cuts)), sources_(std::move(sources)), images_(std::move(images)) {
  const auto refuse = [](const char* why) {
    throw Error(EINVAL, {.attempted = "make a table of tiles", .detail = why});
  };
  std::size_t tiles = 1;
  for (const auto& axis : cuts_) {
    if (axis.empty()) refuse("an axis has no boundaries");
    tiles *= axis.size() - 1;
  }
  if (tiles != sources_.size()) refuse("it has another number of tiles than the grid");
  for (const Image& image : images_) {
    if (image.axes.size() != cuts_.size()) refuse("an image has another number of axes");
    check_permutation(image.axes, rank());
  }
  std::int32_t count = 0;
  for (const Source& source : sources_) {
    if (source.image < 0 || source.image >= static_cast<std::int32_t>(images_.size()))
      refuse("a tile has no image");
    count = std::max(count, source.number + 1);
  }
  if (static_cast<std::size_t>(count) > sources_.size()) refuse("a tile is not in the grid");
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count));
  Box whole{Extents::filled(rank(), 0), Extents::filled(rank(), 0)};
  for (int axis = 0; axis < rank(); ++axis) whole.end[axis] = cuts_[static_cast<std::size_t>(axis)].back();
  each_tile(whole,
            [&](std::int32_t number, const Image&, bool is_stored, const Extents&, const Extents& shape) {
              if (is_stored) sizes[static_cast<std::size_t>(number)] = shape.product();
            });
  offsets_.resize(sizes.size());
  std::exclusive_scan(sizes.begin(), sizes.end(), offsets_.begin(), std::int64_t{0});
}

// ---- transfers ----

/// A tile in its own memory, on its way from or to an array.
struct TiledBoxes::Piece {
  std::int32_t number = 0;
  std::int64_t elements = 0, bytes = 0;
  Strided to = {};  ///< its destination
  Extents shape = {}, strides = {};
  int sign = 1;
  bool started = false;
  TileMemory::Memory memory = {};
  Waits waits = {};
};

TileMemory::Memory TileMemory::take(std::int64_t bytes) {
  used_ += bytes;
  if (bytes == free_size_ && !free_.empty()) {
    Memory memory = std::move(free_.back());
    free_.pop_back();
    free_bytes_ -= bytes;
    return memory;
  }
  while (!free_.empty() && used_ + free_bytes_ > max_bytes_) {
    free_.pop_back();
    free_bytes_ -= free_size_;
  }
  return std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
}

void TileMemory::give(Memory memory, std::int64_t bytes) noexcept {
  used_ -= bytes;
  if (!memory || used_ + free_bytes_ + bytes > max_bytes_) return;
  if (bytes != free_size_) {
    free_.clear();
    free_bytes_ = 0;
    free_size_ = bytes;
  }
  try {
    free_.push_back(std::move(memory));
    free_bytes_ += bytes;
  } catch (const std::bad_alloc&) {  // the memory goes back to the system
  }
}

TiledBoxes::TiledBoxes(std::shared_ptr<const TileTable> table, std::shared_ptr<Boxes> flat,
                       std::vector<std::int64_t> begins, ElementType type, std::int64_t max_bytes)
    : table_(std::move(table)),
      flat_(std::move(flat)),
      begins_(std::move(begins)),
      type_(type),
      got_(max_bytes),
      put_(max_bytes) {}

Box TiledBoxes::range(std::int32_t number, std::int64_t elements) const {
  const auto& begins = begins_.empty() ? table_->offsets() : begins_;
  const std::int64_t begin = begins.at(static_cast<std::size_t>(number));
  return {{begin}, {begin + elements}};
}

void TiledBoxes::get(const Box& box, const Strided& to, Waits& waits) {
  const std::size_t size = size_bytes(type_);
  table_->each_tile(box, [&](std::int32_t number, const TileTable::Image& image, bool is_stored,
                             const Extents& place, const Extents& shape) {
    const Strided target{at(to, place), to.stride_bytes};
    const std::int64_t elements = shape.product();
    const Box part = range(number, elements);
    const Extents strides = strides_in(image, shape, size);
    if (const auto found = flat_->view(part)) {
      permute(target.data, target.stride_bytes, found->data, strides, shape, type_,
              Number(type_, image.sign).bytes, false);
      return;
    }
    if (is_stored && is_row_major(target, shape, size)) {
      flat_->get(part, {target.data, {static_cast<std::int64_t>(size)}}, waits);
      return;
    }
    auto piece = std::make_shared<Piece>(Piece{.number = number,
                                               .elements = elements,
                                               .bytes = elements * static_cast<std::int64_t>(size),
                                               .to = target,
                                               .shape = shape,
                                               .strides = strides,
                                               .sign = image.sign});
    waiting_.push_back(piece);
    start_those_with_room();
    waits.emplace_back([this, piece] {
      while (!piece->started) {  // there is no room, and no other transfer that could free some
        const auto next = waiting_.front();
        waiting_.pop_front();
        start(next);
      }
      finish(*piece);
    });
  });
}

void TiledBoxes::start_those_with_room() {
  while (!waiting_.empty() && got_.has_room(waiting_.front()->bytes)) {
    const auto next = waiting_.front();
    waiting_.pop_front();
    start(next);
  }
}

void TiledBoxes::start(const std::shared_ptr<Piece>& piece) {
  piece->started = true;
  try {
    piece->memory = got_.take(piece->bytes);
    const auto size = static_cast<std::int64_t>(size_bytes(type_));
    flat_->get(range(piece->number, piece->elements), {piece->memory.get(), {size}}, piece->waits);
  } catch (...) {  // for the thread that waits for this one
    piece->waits.emplace_back([error = std::current_exception()] { std::rethrow_exception(error); });
  }
}

void TiledBoxes::finish(Piece& piece) {
  const auto end = [&] {
    got_.give(std::move(piece.memory), piece.bytes);
    start_those_with_room();
  };
  try {
    wait_for(piece.waits);
    permute(piece.to.data, piece.to.stride_bytes, piece.memory.get(), piece.strides, piece.shape, type_,
            Number(type_, piece.sign).bytes, false);
  } catch (...) {
    end();
    throw;
  }
  end();
}

void TiledBoxes::put(const Box& box, const Strided& from, bool add, Waits& waits) {
  const std::size_t size = size_bytes(type_);
  const auto element = static_cast<std::int64_t>(size);
  table_->each_tile(box, [&](std::int32_t number, const TileTable::Image&, bool is_stored,
                             const Extents& place, const Extents& shape) {
    if (!is_stored) return;
    const Strided source{at(from, place), from.stride_bytes};
    const std::int64_t elements = shape.product();
    const Box part = range(number, elements);
    if (const auto found = flat_->view(part)) {
      permute(found->data, row_major(shape, size), source.data, source.stride_bytes, shape, type_,
              Number(type_, 1).bytes, add);
      return;
    }
    if (is_row_major(source, shape, size)) {
      flat_->put(part, {source.data, {element}}, add, waits);
      return;
    }
    auto piece = std::make_shared<Piece>(
        Piece{.number = number, .elements = elements, .bytes = elements * element, .started = true});
    while (!under_way_.empty() && !put_.has_room(piece->bytes)) {
      const auto first = under_way_.front();
      under_way_.pop_front();
      wait_for(first->waits);
      put_.give(std::move(first->memory), first->bytes);
    }
    piece->memory = put_.take(piece->bytes);
    copy_strided(piece->memory.get(), row_major(shape, size), source.data, source.stride_bytes, shape, size);
    flat_->put(part, {piece->memory.get(), {element}}, add, piece->waits);
    under_way_.push_back(piece);
    waits.emplace_back([piece] { wait_for(piece->waits); });
  });
}

void TiledBoxes::prefetch(std::span<const Box> boxes) {
  std::vector<Box> ranges;
  for (const Box& box : boxes)
    table_->each_tile(box, [&](std::int32_t number, const TileTable::Image&, bool, const Extents&,
                               const Extents& shape) { ranges.push_back(range(number, shape.product())); });
  flat_->prefetch(ranges);
}

/// The memory of a box that is one stored tile.
std::optional<Strided> TiledBoxes::view(const Box& box) {
  std::optional<Strided> found;
  int tiles = 0;
  table_->each_tile(box, [&](std::int32_t number, const TileTable::Image&, bool is_stored, const Extents&,
                             const Extents& shape) {
    if (++tiles > 1 || !is_stored || shape != box.shape()) return;
    found = flat_->view(range(number, shape.product()));
    if (found) found->stride_bytes = row_major(shape, size_bytes(type_));
  });
  return tiles == 1 ? found : std::nullopt;
}

}  // namespace outcore::tensor
