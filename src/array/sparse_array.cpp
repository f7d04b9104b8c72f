#include "outcore/sparse_array.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>

#include "outcore/error.hpp"

namespace outcore {
namespace {

constexpr std::int64_t min_chunk_bytes = 128 << 10, max_chunk_bytes = 1 << 20;
constexpr std::int64_t chunks_of_tile = 4;  // at least: the first and the last may be shared with other tiles
constexpr std::int64_t chunks_of_cache = 8;  // at least: some come and go while others are used
constexpr std::int64_t small_cache_bytes = 4 << 20;
constexpr std::int64_t max_elements = std::int64_t{1} << 61;
constexpr std::string_view head = "{\"tiles\": ", between = ", \"holds\": ", tail = "}";

/// The metadata of the storage: the map, and the user's metadata.
std::string joined(const TileMap& map, std::string_view metadata) {
  std::string text(head);
  text += map.encode();
  text += between;
  text += metadata.empty() ? "null" : metadata;
  text += tail;
  return text;
}

/// Number of elements of the tiles of each process.
std::vector<std::int64_t> elements_of_processes(const TileMap& map, int processes) {
  std::vector<std::int64_t> elements(static_cast<std::size_t>(processes));
  for (std::int64_t k = 0; k < map.count(); ++k)
    elements[static_cast<std::size_t>(k % processes)] += map.elements(k);
  return elements;
}

/// Tiles are moved as a whole. So chunks are as large as possible while a tile, and the cache, still holds
/// several. A cache that depends on the budget counts as a small one, as budgets of processes may differ.
/// Measured: [M40].
std::int64_t suitable_chunk_bytes(std::int64_t tile_bytes, const DiskArrayCaches& caches) {
  const std::int64_t cache_bytes = caches.cache_bytes >= 0 ? caches.cache_bytes : small_cache_bytes;
  std::int64_t bytes = min_chunk_bytes;
  while (bytes < max_chunk_bytes && 2 * bytes * chunks_of_tile <= tile_bytes &&
         2 * bytes * chunks_of_cache <= cache_bytes)
    bytes *= 2;
  return bytes;
}

constexpr std::string_view table_name = "the map of tiles of a block-sparse array";

/// Memory of the map, and of the positions of tiles.
std::int64_t table_bytes(const TileMap& map) {
  std::int64_t bytes = 2 * map.count() * static_cast<std::int64_t>(sizeof(std::int64_t));
  for (const auto& axis : map.boundaries())
    bytes += static_cast<std::int64_t>(axis.size() * sizeof(std::int64_t));
  return bytes;
}

Strided contiguous(std::span<const std::byte> memory, ElementType type) {
  return {const_cast<std::byte*>(memory.data()), {static_cast<std::int64_t>(size_bytes(type))}};
}

/// The parts of the metadata of the storage: the map, and the user's metadata.
TileMap stored_map(const DiskArray& array, std::string& metadata) {
  const auto refuse = [&](const std::string& detail) {
    throw Error(EINVAL, {.attempted = "open block-sparse array", .path = array.path(), .detail = detail});
  };
  const std::string& text = array.metadata();
  if (!text.starts_with(head)) refuse("it is an array without a map of tiles");
  std::size_t used = 0;
  TileMap map = TileMap::decode(text.substr(head.size()), used);
  const std::string rest = text.substr(head.size() + used);
  if (!rest.starts_with(between) || !rest.ends_with(tail)) refuse("its map of tiles is damaged");
  metadata = rest.substr(between.size(), rest.size() - between.size() - tail.size());
  const std::int64_t room = array.shape().product() / array.components();
  const auto all = elements_of_processes(map, array.components());
  if (array.shape().rank() != 1 || *std::ranges::max_element(all) > room)
    refuse("its map of tiles is another array's");
  return map;
}

}  // namespace

BlockSparseArray::BlockSparseArray(World& world, const TileMap& map, ElementType type,
                                   const DiskArrayOptions& options)
    : BlockSparseArray(world, [&](TileMap& wanted, ElementType& element_type, DiskArrayOptions& all_options) {
        wanted = map;
        element_type = type;
        all_options = options;
      }) {}

BlockSparseArray::BlockSparseArray(World& world, const Make& make)
    : array_(world, [&](Extents& shape, ElementType& type, DiskArrayOptions& options) {
        make(map_, type, options);
        if (map_.shape().rank() == 0)
          throw Error(EINVAL, {.attempted = "create block-sparse array", .detail = "there are no tiles"});
        reservation_ = Reservation(world.budget(), table_bytes(map_), table_name);
        metadata_ = options.metadata;
        options.metadata = joined(map_, metadata_);
        const auto all = elements_of_processes(map_, world.size());
        const std::int64_t most = std::max<std::int64_t>(*std::ranges::max_element(all), 1);
        if (most > max_elements / world.size())
          throw Error(EINVAL, {.attempted = "create block-sparse array",
                               .detail = "one process would have " + std::to_string(most) + " elements"});
        const auto element = static_cast<std::int64_t>(size_bytes(type));
        const std::int64_t tiles = std::max<std::int64_t>(map_.count(), 1);
        const std::int64_t bytes =
            suitable_chunk_bytes(std::reduce(all.begin(), all.end()) / tiles * element, options.caches);
        const std::int64_t chunk = options.chunk.rank() > 0 ? options.chunk[0] : bytes / element;
        options.chunk = {std::clamp<std::int64_t>(chunk, 1, most)};
        options.typical = {};
        options.group = (most + options.chunk[0] - 1) / options.chunk[0];  // all tiles of a process
        shape = {world.size() * options.group * options.chunk[0]};
      }) {
  place_tiles();
}

BlockSparseArray::BlockSparseArray(DiskArray array, TileMap map, std::string metadata)
    : map_(std::move(map)), metadata_(std::move(metadata)), array_(std::move(array)) {
  place_tiles();
}

BlockSparseArray BlockSparseArray::open(World& world, const std::string& path, bool read_only,
                                        const DiskArrayCaches& caches) {
  return open(world, [&] { return DiskArrayOpening{path, read_only, caches}; });
}

BlockSparseArray BlockSparseArray::open(World& world, const DiskArray::MakeOpening& make) {
  DiskArray array = DiskArray::open(world, make);
  TileMap map;
  std::string metadata;
  Reservation reservation;
  world.together("open block-sparse array", 0, [&] {
    map = stored_map(array, metadata);
    reservation = Reservation(world.budget(), table_bytes(map), table_name);
  });
  BlockSparseArray opened(std::move(array), std::move(map), metadata == "null" ? "" : metadata);
  opened.reservation_ = std::move(reservation);
  return opened;
}

void BlockSparseArray::place_tiles() {
  const int processes = array_.components();
  const std::int64_t room = array_.shape()[0] / processes;
  std::vector<std::int64_t> next(static_cast<std::size_t>(processes));
  begin_.reserve(static_cast<std::size_t>(map_.count()));
  for (std::int64_t k = 0; k < map_.count(); ++k) {
    std::int64_t& used = next[static_cast<std::size_t>(k % processes)];
    begin_.push_back(k % processes * room + used);
    used += map_.elements(k);
  }
}

int BlockSparseArray::owner(const Extents& tile) const {
  const std::int64_t number = map_.number(tile);
  return number < 0 ? -1 : array_.owner(static_cast<int>(number % array_.components()));
}

/// Where a tile lies in the storage.
Box BlockSparseArray::box_of(std::int64_t number, std::size_t memory_bytes,
                             std::string_view attempted) const {
  const std::int64_t elements = map_.elements(number);
  const std::int64_t bytes = elements * static_cast<std::int64_t>(size_bytes(type()));
  if (static_cast<std::int64_t>(memory_bytes) != bytes)
    throw Error(EINVAL, {.attempted = std::string(attempted) + " tile " + map_.tile(number).text(),
                         .size_bytes = static_cast<std::int64_t>(memory_bytes),
                         .detail = "the tile has " + std::to_string(bytes) + " bytes"});
  const std::int64_t begin = begin_[static_cast<std::size_t>(number)];
  return {{begin}, {begin + elements}};
}

/// The number of a tile that must not be zero.
std::int64_t BlockSparseArray::there(const Extents& tile, std::string_view attempted) const {
  const std::int64_t number = map_.number(tile);
  if (number < 0)
    throw Error(EINVAL, {.attempted = std::string(attempted) + " tile " + tile.text(),
                         .detail = "it is one of those that are zero"});
  return number;
}

// ---- transfers

Request BlockSparseArray::get_tile_async(const Extents& tile, std::span<std::byte> memory) const {
  const std::int64_t number = map_.number(tile);
  if (number >= 0) return array_.get_async(box_of(number, memory.size(), "get"), contiguous(memory, type()));
  const std::int64_t bytes = map_.box(tile).volume() * static_cast<std::int64_t>(size_bytes(type()));
  if (static_cast<std::int64_t>(memory.size()) != bytes)
    throw Error(EINVAL, {.attempted = "get tile " + tile.text(),
                         .size_bytes = static_cast<std::int64_t>(memory.size()),
                         .detail = "the tile has " + std::to_string(bytes) + " bytes"});
  std::ranges::fill(memory, std::byte{0});
  return {};
}

Request BlockSparseArray::put_tile_async(const Extents& tile, std::span<const std::byte> memory) {
  return array_.put_async(box_of(there(tile, "put"), memory.size(), "put"), contiguous(memory, type()));
}

Request BlockSparseArray::accumulate_tile_async(const Extents& tile, std::span<const std::byte> memory,
                                                const void* alpha) {
  return array_.accumulate_async(box_of(there(tile, "accumulate"), memory.size(), "accumulate"),
                                 contiguous(memory, type()), alpha);
}

void BlockSparseArray::get_tile(const Extents& tile, std::span<std::byte> memory) const {
  if (const std::int64_t number = map_.number(tile); number >= 0)
    array_.get(box_of(number, memory.size(), "get"), contiguous(memory, type()));
  else
    (void)get_tile_async(tile, memory);
}

void BlockSparseArray::put_tile(const Extents& tile, std::span<const std::byte> memory) {
  array_.put(box_of(there(tile, "put"), memory.size(), "put"), contiguous(memory, type()));
}

void BlockSparseArray::accumulate_tile(const Extents& tile, std::span<const std::byte> memory,
                                       const void* alpha) {
  array_.accumulate(box_of(there(tile, "accumulate"), memory.size(), "accumulate"),
                    contiguous(memory, type()), alpha);
}

// ---- the same with typed memory

std::span<std::byte> BlockSparseArray::bytes_of(const Extents& tile, const ConstElements& memory) const {
  const Extents shape = map_.box(tile).shape();
  return {memory.contiguous(shape, type(), "tile"),
          static_cast<std::size_t>(shape.product()) * size_bytes(type())};
}

Request BlockSparseArray::get_tile_async(const Extents& tile, const Elements& memory) const {
  return get_tile_async(tile, bytes_of(tile, memory));
}

Request BlockSparseArray::put_tile_async(const Extents& tile, const ConstElements& memory) {
  return put_tile_async(tile, bytes_of(tile, memory));
}

Request BlockSparseArray::accumulate_tile_async(const Extents& tile, const ConstElements& memory,
                                                Factor alpha) {
  const Factor::Value value = alpha.as(type());
  return accumulate_tile_async(tile, bytes_of(tile, memory), value.bytes.data());
}

void BlockSparseArray::get_tile(const Extents& tile, const Elements& memory) const {
  get_tile(tile, bytes_of(tile, memory));
}

void BlockSparseArray::put_tile(const Extents& tile, const ConstElements& memory) {
  put_tile(tile, bytes_of(tile, memory));
}

void BlockSparseArray::accumulate_tile(const Extents& tile, const ConstElements& memory, Factor alpha) {
  const Factor::Value value = alpha.as(type());
  accumulate_tile(tile, bytes_of(tile, memory), value.bytes.data());
}

void BlockSparseArray::prefetch(std::span<const Extents> tiles) const {
  std::vector<Box> boxes;
  for (const Extents& tile : tiles)
    if (const std::int64_t number = map_.number(tile); number >= 0) {
      const std::int64_t begin = begin_[static_cast<std::size_t>(number)];
      boxes.push_back({{begin}, {begin + map_.elements(number)}});
    }
  array_.prefetch(boxes);
}

void BlockSparseArray::flush(std::string_view metadata) {
  flush([&] { return std::string(metadata); });
}

void BlockSparseArray::flush(const DiskArray::MakeMetadata& make) {
  std::string metadata;
  array_.flush([&] {
    metadata = make();
    return joined(map_, metadata);
  });
  metadata_ = std::move(metadata);
}

}  // namespace outcore
