// The common parts of the C interfaces of arrays: boxes, memory, handles.
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "capi/handles.hpp"
#include "capi/requests.hpp"
#include "outcore/box.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/element_type.hpp"
#include "outcore/global_array.hpp"
#include "outcore/world.hpp"

namespace outcore::capi {

/// An object made in a world, and the world, which it needs as long as it lives.
template <class Thing>
struct InWorld {
  std::shared_ptr<World> world;
  std::shared_ptr<Thing> thing;
};

/// All throw Error(EINVAL) for NULL and for invalid ranks and types; the array checks whether a box is
/// inside.
[[nodiscard]] Extents extents_of(int rank, const std::int64_t* values, const char* attempted);
[[nodiscard]] Box box_of(int rank, const std::int64_t* begin, const std::int64_t* end, const char* attempted);
[[nodiscard]] ElementType element_type_of(int type, const char* attempted);
/// Memory of the caller for a box; operations that only read do not write to it.
[[nodiscard]] Strided strided_of(const void* memory, const std::int64_t* stride_bytes, const Box& box,
                                 std::size_t element_bytes, const char* attempted);

/// Stores numbers, unless the place is NULL.
void hand_out(const Extents& extents, std::int64_t* place);
/// Stores a text, cut to `size` with its final 0, and its length.
void hand_out(const std::string& text, char* place, std::size_t size, std::int64_t* bytes);

/// "none" (also null or empty), "blosc2" or "blosc2-lz4". Error(EINVAL) else.
[[nodiscard]] store::CodecOptions codec_of(const char* name, std::size_t element_bytes);
/// Metadata of an array: a text, which is stored as JSON, as Python reads it; and the reverse. Metadata of
/// Python that are no text are returned as JSON. Error(EINVAL) if a text is not UTF-8.
[[nodiscard]] std::string kept_metadata(const char* text, const char* attempted);
[[nodiscard]] std::string text_of_metadata(const std::string& kept);

/// The options of a disk array. `rank`: the length of its lists.
[[nodiscard]] DiskArrayOptions options_of_array(const oc_dra_options* given, int rank,
                                                std::size_t element_bytes, const char* attempted);

[[nodiscard]] InWorld<GlobalArray> global_array_of(int array);  ///< Error(EBADF) if there is none
/// An array of a collective call in a known world: if one process passes an invalid handle, all get the
/// error.
[[nodiscard]] InWorld<GlobalArray> global_array_in(World& world, int array);
[[nodiscard]] InWorld<DiskArray> disk_array_of(int array);  ///< Error(EBADF) if there is none
/// The persistent arrays of a world that are open to write, in the order in which they were made or opened,
/// which is the same at all processes. Each element holds one array, and commits and closes it when called.
using Closers = std::vector<std::function<void()>>;
[[nodiscard]] Closers unclosed_disk_arrays(const World& world);
[[nodiscard]] Closers unclosed_sparse_arrays(const World& world);
[[nodiscard]] int add_disk_array(InWorld<DiskArray> array);  ///< returns its new handle

/// The persistent arrays of one table. `storage(thing)` is the disk array of a thing.
template <class Thing, class Storage>
Closers unclosed(Table<int, InWorld<Thing>>& table, const World& world, Storage storage) {
  const auto found = table.all([&](const InWorld<Thing>& each) {
    const DiskArray& array = storage(*each.thing);
    return each.world.get() == &world && !array.path().empty() && !array.read_only() && !array.closed();
  });
  Closers closers;
  for (const InWorld<Thing>& each : found)
    closers.emplace_back([storage, thing = each.thing] { storage(*thing).close(); });
  return closers;
}

/// Runs a call on an open object.
template <class Thing, class Body>
int on(Table<int, InWorld<Thing>>& table, int handle, const char* what, Body body) {
  return guarded([&] {
    const auto open = table.get(handle, EBADF, what);
    body(*open.thing);
    return OC_OK;
  });
}

/// Begins a request on an open object, and gives the request a number.
template <class Thing, class Begin>
int begun(Table<int, InWorld<Thing>>& table, int handle, const char* what, std::int64_t* request,
          Begin begin) {
  return guarded([&] {
    auto open = table.get(handle, EBADF, what);
    if (!request) invalid(what, "request is NULL");
    auto its_request = begin(*open.thing);
    *request = number_of({std::move(its_request), std::make_shared<InWorld<Thing>>(std::move(open))});
    return OC_OK;
  });
}

}  // namespace outcore::capi
