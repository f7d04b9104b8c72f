#include "outcore/tiling.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "outcore/error.hpp"

namespace outcore {
namespace {

[[noreturn]] void refuse(const std::string& detail) {
  throw Error(EINVAL, {.attempted = "make a tile map", .detail = detail});
}

/// Reads what TileMap::encode writes, and nothing else.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  [[nodiscard]] std::size_t position() const noexcept { return at_; }
  [[nodiscard]] bool accepts(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view word) {
    if (!accepts(word)) refuse("'" + std::string(word) + "' is missing at byte " + std::to_string(at_));
  }
  std::int64_t number() {
    std::int64_t value = 0;
    const char* end = text_.data() + text_.size();
    const auto [next, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc()) refuse("a number is missing at byte " + std::to_string(at_));
    at_ = static_cast<std::size_t>(next - text_.data());
    return value;
  }
  std::string_view until(char mark) {
    const std::size_t end = text_.find(mark, at_);
    if (end == std::string_view::npos) refuse("it is cut off");
    const auto word = text_.substr(at_, end - at_);
    at_ = end;
    return word;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

constexpr std::string_view digits = "0123456789abcdef";

}  // namespace

TileMap::TileMap(std::vector<std::vector<std::int64_t>> boundaries, std::vector<bool> nonzero)
    : boundaries_(std::move(boundaries)) {
  const auto rank = static_cast<int>(std::min<std::size_t>(boundaries_.size(), max_rank + 1));
  if (rank < 1 || rank > max_rank)
    refuse(std::to_string(boundaries_.size()) + " axes; 1 to " + std::to_string(max_rank) + " are possible");
  shape_ = grid_ = Extents::filled(rank, 0);
  std::int64_t tiles = 1;
  for (int i = 0; i < rank; ++i) {
    const std::vector<std::int64_t>& axis = boundaries_[static_cast<std::size_t>(i)];
    if (axis.empty() || axis.front() != 0 || !std::ranges::is_sorted(axis, std::ranges::less_equal()))
      refuse("boundaries of axis " + std::to_string(i) + " do not rise from 0");
    shape_[i] = axis.back();
    grid_[i] = static_cast<std::int64_t>(axis.size()) - 1;
    if (tiles > 0 && grid_[i] > max_tiles / tiles)
      refuse("more than " + std::to_string(max_tiles) + " tiles");
    tiles *= grid_[i];
  }
  std::int64_t elements = 1;
  for (const std::int64_t side : shape_.values())
    if (__builtin_mul_overflow(elements, side, &elements)) refuse("more than 2^63 elements");
  if (static_cast<std::int64_t>(nonzero.size()) != tiles)
    refuse(std::to_string(nonzero.size()) + " flags for tiles were given; there are " +
           std::to_string(tiles));
  for (std::int64_t i = 0; i < tiles; ++i)
    if (nonzero[static_cast<std::size_t>(i)]) tiles_.push_back(i);
}

std::int64_t TileMap::position(const Extents& tile) const {
  bool inside = tile.rank() == grid_.rank();
  for (int i = 0; inside && i < tile.rank(); ++i) inside = tile[i] >= 0 && tile[i] < grid_[i];
  if (!inside)
    throw Error(EINVAL, {.attempted = "access to tile " + tile.text(),
                         .detail = "the array has " + grid_.text() + " tiles"});
  std::int64_t position = 0;
  for (int i = 0; i < tile.rank(); ++i) position = position * grid_[i] + tile[i];
  return position;
}

Extents TileMap::index_of(std::int64_t position) const noexcept {
  Extents tile = grid_;
  for (int i = grid_.rank() - 1; i >= 0; --i) {
    tile[i] = position % grid_[i];
    position /= grid_[i];
  }
  return tile;
}

Box TileMap::box(const Extents& tile) const {
  (void)position(tile);
  Box box{tile, tile};
  for (int i = 0; i < tile.rank(); ++i) {
    const std::vector<std::int64_t>& axis = boundaries_[static_cast<std::size_t>(i)];
    box.begin[i] = axis[static_cast<std::size_t>(tile[i])];
    box.end[i] = axis[static_cast<std::size_t>(tile[i]) + 1];
  }
  return box;
}

std::int64_t TileMap::number(const Extents& tile) const {
  const std::int64_t wanted = position(tile);
  const auto found = std::ranges::lower_bound(tiles_, wanted);
  return found != tiles_.end() && *found == wanted ? found - tiles_.begin() : -1;
}

Extents TileMap::tile(std::int64_t number) const {
  assert(number >= 0 && number < count());
  return index_of(tiles_[static_cast<std::size_t>(number)]);
}

std::int64_t TileMap::elements(std::int64_t number) const {
  return box(tile(number)).volume();
}

std::string TileMap::encode() const {
  std::string text = "{\"boundaries\": [";
  for (std::size_t i = 0; i < boundaries_.size(); ++i) {
    text += i ? ", [" : "[";
    for (std::size_t k = 0; k < boundaries_[i].size(); ++k)
      text += (k ? ", " : "") + std::to_string(boundaries_[i][k]);
    text += "]";
  }
  std::vector<unsigned> quads(static_cast<std::size_t>((grid_.product() + 3) / 4));
  for (const std::int64_t tile : tiles_) quads[static_cast<std::size_t>(tile / 4)] |= 8U >> (tile % 4);
  text += "], \"nonzero\": \"";
  for (const unsigned quad : quads) text += digits[quad];
  return text + "\"}";
}

TileMap TileMap::decode(const std::string& text, std::size_t& used) {
  Reader reader(text);
  std::vector<std::vector<std::int64_t>> boundaries;
  reader.expect("{\"boundaries\": [");
  do {
    reader.expect("[");
    std::vector<std::int64_t>& axis = boundaries.emplace_back();
    do axis.push_back(reader.number());
    while (reader.accepts(", "));
    reader.expect("]");
  } while (reader.accepts(", "));
  reader.expect("], \"nonzero\": \"");
  const std::string_view quads = reader.until('"');
  reader.expect("\"}");
  used = reader.position();
  std::int64_t tiles = 1;
  for (const auto& axis : boundaries)
    tiles = std::min(tiles * static_cast<std::int64_t>(axis.size() - 1), 2 * max_tiles);
  if (tiles > max_tiles || static_cast<std::int64_t>(quads.size()) != (tiles + 3) / 4)
    refuse("another number of tiles than boundaries");
  std::vector<bool> nonzero(static_cast<std::size_t>(tiles));
  for (std::size_t i = 0; i < nonzero.size(); ++i) {
    const std::size_t digit = digits.find(quads[i / 4]);
    if (digit == std::string_view::npos) refuse("'" + std::string(1, quads[i / 4]) + "' is no digit");
    nonzero[i] = (digit & (8U >> (i % 4))) != 0;
  }
  return {std::move(boundaries), std::move(nonzero)};
}

}  // namespace outcore
