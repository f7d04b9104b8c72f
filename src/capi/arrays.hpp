// What the C interfaces of arrays share: boxes, memory, handles.
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

/// Something made in a world, and the world that it needs as long as it lives.
template <class Thing>
struct InWorld {
  std::shared_ptr<World> world;
  std::shared_ptr<Thing> thing;
};

/// All throw Error(EINVAL) for NULL, ranks and types that are none; whether a box is inside is for the array
/// to say.
[[nodiscard]] Extents extents_of(int rank, const std::int64_t* values, const char* attempted);
[[nodiscard]] Box box_of(int rank, const std::int64_t* begin, const std::int64_t* end, const char* attempted);
[[nodiscard]] ElementType element_type_of(int type, const char* attempted);
/// Memory of the caller for a box; it is not written to where the operation only reads.
[[nodiscard]] Strided strided_of(const void* memory, const std::int64_t* stride_bytes, const Box& box,
                                 std::size_t element_bytes, const char* attempted);

/// Hands out numbers, if there is a place for them.
void hand_out(const Extents& extents, std::int64_t* place);
/// Hands out a text, cut to `size` with its final 0, and its length.
void hand_out(const std::string& text, char* place, std::size_t size, std::int64_t* bytes);

/// "none" (also null or empty), "blosc2" or "blosc2-lz4". Error(EINVAL) else.
[[nodiscard]] store::CodecOptions codec_of(const char* name, std::size_t element_bytes);
/// Metadata of an array: a text, which is kept as JSON, as Python reads it; and back. What Python has kept,
/// if it is no text, is handed out as JSON. Error(EINVAL) if it is not UTF-8.
[[nodiscard]] std::string kept_metadata(const char* text, const char* attempted);
[[nodiscard]] std::string text_of_metadata(const std::string& kept);

/// The options of a disk array. `rank`: of its lists.
[[nodiscard]] DiskArrayOptions options_of_array(const oc_dra_options* given, int rank,
                                                std::size_t element_bytes, const char* attempted);

[[nodiscard]] InWorld<GlobalArray> global_array_of(int array);  ///< Error(EBADF) if there is none
/// An array of a collective call in a world that is known: if one process gives none, all get the error.
[[nodiscard]] InWorld<GlobalArray> global_array_in(World& world, int array);
[[nodiscard]] InWorld<DiskArray> disk_array_of(int array);  ///< Error(EBADF) if there is none
/// Persistent arrays of a world that are open to write, in the order in which they were made or opened, which
/// is the same at all processes. Each element keeps one, and commits and closes it when it is called.
using Closers = std::vector<std::function<void()>>;
[[nodiscard]] Closers unclosed_disk_arrays(const World& world);
[[nodiscard]] Closers unclosed_sparse_arrays(const World& world);
[[nodiscard]] int add_disk_array(InWorld<DiskArray> array);  ///< the handle that it has from now on

/// Those of one table. `storage(thing)` is the disk array of a thing.
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

/// Runs a call on what is open.
template <class Thing, class Body>
int on(Table<int, InWorld<Thing>>& table, int handle, const char* what, Body body) {
  return guarded([&] {
    const auto open = table.get(handle, EBADF, what);
    body(*open.thing);
    return OC_OK;
  });
}

/// Begins a request on what is open, and gives it a number.
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
