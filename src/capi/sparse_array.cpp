// The C interface of block-sparse arrays.

#include "outcore/sparse_array.hpp"

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/arrays.hpp"
#include "outcore/outcore.h"
#include "outcore/tiling.hpp"

namespace outcore::capi {
namespace {

constexpr const char* what = "block-sparse array";

// Leaked: at exit no collective calls are possible any more.
auto& arrays = *new Table<int, InWorld<BlockSparseArray>>;

TileMap map_of(int rank, const std::int64_t* tiles, const std::int64_t* boundaries,
               const unsigned char* nonzero, const char* attempted) {
  if (!boundaries || !nonzero) invalid(attempted, "boundaries or nonzero is NULL");
  std::vector<std::vector<std::int64_t>> its_boundaries;
  std::int64_t count = 1;
  const std::int64_t* next = boundaries;
  const Extents counts = extents_of(rank, tiles, attempted);
  for (const std::int64_t along : counts.values()) {
    if (along < 1 || along > TileMap::max_tiles || (count *= along) > TileMap::max_tiles)
      invalid(attempted, "there are no tiles, or too many");
    its_boundaries.emplace_back(next, next + along + 1);
    next += along + 1;
  }
  std::vector<bool> its_nonzero;
  its_nonzero.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) its_nonzero.push_back(nonzero[i] != 0);
  return TileMap(std::move(its_boundaries), std::move(its_nonzero));
}

Extents tile_of(const BlockSparseArray& array, const std::int64_t* tile) {
  return extents_of(array.map().grid().rank(), tile, "use a tile");
}

}  // namespace

Closers unclosed_sparse_arrays(const World& world) {
  return unclosed(arrays, world, [](BlockSparseArray& array) -> DiskArray& { return array.storage(); });
}
}  // namespace outcore::capi

using namespace outcore::capi;
using outcore::BlockSparseArray;

extern "C" {

int oc_sparse_create(int world, int type, int rank, const int64_t* tiles, const int64_t* boundaries,
                     const unsigned char* nonzero, const oc_dra_options* options, int* array) {
  return guarded([&] {
    auto its_world = world_of(world);
    auto made = std::make_shared<BlockSparseArray>(
        *its_world,
        [&](outcore::TileMap& map, outcore::ElementType& its_type, outcore::DiskArrayOptions& its_options) {
          constexpr const char* attempted = "create block-sparse array";
          if (!array) invalid(attempted, "array is NULL");  // in the gate, so all processes get it
          its_type = element_type_of(type, attempted);
          map = map_of(rank, tiles, boundaries, nonzero, attempted);
          its_options = options_of_array(options, 1, size_bytes(its_type), attempted);
          its_options.typical = {};
        });
    *array = arrays.add({std::move(its_world), std::move(made)});
    return OC_OK;
  });
}

int oc_sparse_open(int world, const char* path, int writable, int* array) {
  return guarded([&] {
    auto its_world = world_of(world);
    auto opened = std::make_shared<BlockSparseArray>(BlockSparseArray::open(*its_world, [&] {
      if (!array)
        invalid("open block-sparse array", "array is NULL");  // in the gate, so all processes get it
      if (!path) invalid("open block-sparse array", "path is NULL");
      return outcore::DiskArrayOpening{.path = path, .read_only = writable == 0};
    }));
    *array = arrays.add({std::move(its_world), std::move(opened)});
    return OC_OK;
  });
}

int oc_sparse_inquire(int array, int* type, int* rank, int64_t* shape, int64_t* tiles, int64_t* count) {
  return on(arrays, array, what, [&](BlockSparseArray& open) {
    if (type) *type = static_cast<int>(open.type());
    if (rank) *rank = open.map().shape().rank();
    hand_out(open.map().shape(), shape);
    hand_out(open.map().grid(), tiles);
    if (count) *count = open.map().count();
  });
}

int oc_sparse_tile(int array, const int64_t* tile, int64_t* begin, int64_t* end, int* owner) {
  return on(arrays, array, what, [&](BlockSparseArray& open) {
    const auto its_tile = tile_of(open, tile);
    const outcore::Box box = open.map().box(its_tile);
    hand_out(box.begin, begin);
    hand_out(box.end, end);
    if (owner) *owner = open.owner(its_tile);
  });
}

int oc_sparse_get(int array, const int64_t* tile, void* buffer, int64_t bytes) {
  return on(arrays, array, what,
            [&](BlockSparseArray& open) { open.get_tile(tile_of(open, tile), memory(buffer, bytes)); });
}

int oc_sparse_put(int array, const int64_t* tile, const void* buffer, int64_t bytes) {
  return on(arrays, array, what,
            [&](BlockSparseArray& open) { open.put_tile(tile_of(open, tile), memory(buffer, bytes)); });
}

int oc_sparse_acc(int array, const int64_t* tile, const void* buffer, int64_t bytes, const void* alpha) {
  return on(arrays, array, what, [&](BlockSparseArray& open) {
    open.accumulate_tile(tile_of(open, tile), memory(buffer, bytes), alpha);
  });
}

int oc_sparse_get_async(int array, const int64_t* tile, void* buffer, int64_t bytes, int64_t* request) {
  return begun(arrays, array, what, request, [&](BlockSparseArray& open) {
    return open.get_tile_async(tile_of(open, tile), memory(buffer, bytes));
  });
}

int oc_sparse_put_async(int array, const int64_t* tile, const void* buffer, int64_t bytes, int64_t* request) {
  return begun(arrays, array, what, request, [&](BlockSparseArray& open) {
    return open.put_tile_async(tile_of(open, tile), memory(buffer, bytes));
  });
}

int oc_sparse_acc_async(int array, const int64_t* tile, const void* buffer, int64_t bytes, const void* alpha,
                        int64_t* request) {
  return begun(arrays, array, what, request, [&](BlockSparseArray& open) {
    return open.accumulate_tile_async(tile_of(open, tile), memory(buffer, bytes), alpha);
  });
}

int oc_sparse_prefetch(int array, const int64_t* tile) {
  return on(arrays, array, what, [&](BlockSparseArray& open) {
    const outcore::Extents its_tile = tile_of(open, tile);
    open.prefetch(std::span(&its_tile, 1));
  });
}

int oc_sparse_sync(int array) {
  return on(arrays, array, what, [](BlockSparseArray& open) { open.sync(); });
}

int oc_sparse_flush(int array, const char* metadata) {
  return on(arrays, array, what, [&](BlockSparseArray& open) {
    if (metadata)
      open.flush([&] { return kept_metadata(metadata, "flush block-sparse array"); });
    else
      open.storage().flush();
  });
}

int oc_sparse_metadata(int array, char* text, size_t size, int64_t* bytes) {
  return on(arrays, array, what,
            [&](BlockSparseArray& open) { hand_out(text_of_metadata(open.metadata()), text, size, bytes); });
}

int oc_sparse_close(int array) {
  return guarded([&] {
    arrays.take(array, EBADF, what).thing->storage().close();
    return OC_OK;
  });
}

int oc_sparse_delete(int array) {
  return guarded([&] {
    arrays.take(array, EBADF, what).thing->storage().remove();
    return OC_OK;
  });
}

}  // extern "C"
