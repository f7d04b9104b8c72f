// The C interface of disk arrays.

#include "outcore/disk_array.hpp"

#include <optional>
#include <span>
#include <string_view>

#include "capi/arrays.hpp"
#include "outcore/outcore.h"

namespace outcore::capi {
namespace {

constexpr const char* what = "disk array";

// Leaked: at exit no collective calls are possible any more.
auto& arrays = *new Table<int, InWorld<DiskArray>>;

/// Box and memory of one transfer.
struct Patch {
  Box box;
  Strided memory;
  Patch(const DiskArray& array, const std::int64_t* begin, const std::int64_t* end, const void* its_memory,
        const std::int64_t* stride_bytes, const char* attempted)
      : box(box_of(array.shape().rank(), begin, end, attempted)),
        memory(strided_of(its_memory, stride_bytes, box, size_bytes(array.type()), attempted)) {}
};

/// A section of a global array, as C passes it.
struct GlobalSection {
  int ga;
  const std::int64_t *begin, *end;
  const int* order;
};

/// Begin collective transfers. A process that cannot take part tells the others why.
template <bool writes>
Request transfer_all(DiskArray& array, const std::int64_t* begin, const std::int64_t* end,
                     const GlobalSection& given) {
  constexpr const char* attempted = writes ? "write a section" : "read a section";
  InWorld<GlobalArray> global;
  Box box;
  Section section;
  try {
    global = global_array_of(given.ga);
    const int rank = global.thing->shape().rank();
    box = box_of(array.shape().rank(), begin, end, attempted);
    section.box = box_of(rank, given.begin, given.end, attempted);
    if (given.order) section.order.assign(given.order, given.order + rank);
  } catch (const Error& error) {
    return array.refuse(error);
  }
  if constexpr (writes)
    return array.write_all_async(*global.thing, section, box);
  else
    return array.read_all_async(*global.thing, section, box);
}

template <bool writes>
Request blocks_all(DiskArray& array, const std::int64_t* begin, const std::int64_t* end, const void* memory,
                   const std::int64_t* stride_bytes) {
  std::optional<Patch> patch;
  try {
    patch.emplace(array, begin, end, memory, stride_bytes, writes ? "write blocks" : "read blocks");
  } catch (const Error& error) {
    return array.refuse(error);
  }
  if constexpr (writes)
    return array.write_all_async(patch->memory, patch->box);
  else
    return array.read_all_async(patch->memory, patch->box);
}

}  // namespace

InWorld<DiskArray> disk_array_of(int array) {
  return arrays.get(array, EBADF, what);
}

Closers unclosed_disk_arrays(const World& world) {
  return unclosed(arrays, world, [](DiskArray& array) -> DiskArray& { return array; });
}

int add_disk_array(InWorld<DiskArray> array) {
  return arrays.add(std::move(array));
}

}  // namespace outcore::capi

using namespace outcore::capi;
using outcore::DiskArray;

extern "C" {

int oc_dra_create(int world, int type, int rank, const int64_t* shape, const oc_dra_options* options,
                  int* array) {
  return guarded([&] {
    auto its_world = world_of(world);
    auto made = std::make_shared<DiskArray>(
        *its_world, [&](outcore::Extents& its_shape, outcore::ElementType& its_type,
                        outcore::DiskArrayOptions& its_options) {
          constexpr const char* attempted = "create disk array";
          if (!array) invalid(attempted, "array is NULL");  // in the gate, so all processes get it
          its_type = element_type_of(type, attempted);
          its_shape = extents_of(rank, shape, attempted);
          its_options = options_of_array(options, rank, size_bytes(its_type), attempted);
        });
    *array = arrays.add({std::move(its_world), std::move(made)});
    return OC_OK;
  });
}

int oc_dra_open(int world, const char* path, int writable, int* array) {
  return guarded([&] {
    auto its_world = world_of(world);
    auto opened = std::make_shared<DiskArray>(DiskArray::open(*its_world, [&] {
      if (!array) invalid("open disk array", "array is NULL");  // in the gate, so all processes get it
      if (!path) invalid("open disk array", "path is NULL");
      return outcore::DiskArrayOpening{.path = path, .read_only = writable == 0};
    }));
    *array = arrays.add({std::move(its_world), std::move(opened)});
    return OC_OK;
  });
}

int oc_dra_inquire(int array, int* type, int* rank, int64_t* shape, int64_t* chunk) {
  return on(arrays, array, what, [&](DiskArray& open) {
    if (type) *type = static_cast<int>(open.type());
    if (rank) *rank = open.shape().rank();
    hand_out(open.shape(), shape);
    hand_out(open.chunk(), chunk);
  });
}

int oc_dra_metadata(int array, char* text, size_t size, int64_t* bytes) {
  return on(arrays, array, what,
            [&](DiskArray& open) { hand_out(text_of_metadata(open.metadata()), text, size, bytes); });
}

int oc_dra_stored_bytes(int array, int64_t* bytes) {
  return on(arrays, array, what, [&](DiskArray& open) {
    const auto stored = open.stored_bytes();
    if (bytes) *bytes = stored;
  });
}

int oc_dra_write_all(int array, const int64_t* begin, const int64_t* end, int ga, const int64_t* ga_begin,
                     const int64_t* ga_end, const int* order) {
  return on(arrays, array, what, [&](DiskArray& open) {
    transfer_all<true>(open, begin, end, {ga, ga_begin, ga_end, order}).wait();
  });
}

int oc_dra_read_all(int array, const int64_t* begin, const int64_t* end, int ga, const int64_t* ga_begin,
                    const int64_t* ga_end, const int* order) {
  return on(arrays, array, what, [&](DiskArray& open) {
    transfer_all<false>(open, begin, end, {ga, ga_begin, ga_end, order}).wait();
  });
}

int oc_dra_write_all_async(int array, const int64_t* begin, const int64_t* end, int ga,
                           const int64_t* ga_begin, const int64_t* ga_end, const int* order,
                           int64_t* request) {
  return begun(arrays, array, what, request, [&](DiskArray& open) {
    return transfer_all<true>(open, begin, end, {ga, ga_begin, ga_end, order});
  });
}

int oc_dra_read_all_async(int array, const int64_t* begin, const int64_t* end, int ga,
                          const int64_t* ga_begin, const int64_t* ga_end, const int* order,
                          int64_t* request) {
  return begun(arrays, array, what, request, [&](DiskArray& open) {
    return transfer_all<false>(open, begin, end, {ga, ga_begin, ga_end, order});
  });
}

int oc_dra_write_blocks_all(int array, const int64_t* begin, const int64_t* end, const void* memory,
                            const int64_t* stride_bytes) {
  return on(arrays, array, what,
            [&](DiskArray& open) { blocks_all<true>(open, begin, end, memory, stride_bytes).wait(); });
}

int oc_dra_read_blocks_all(int array, const int64_t* begin, const int64_t* end, void* memory,
                           const int64_t* stride_bytes) {
  return on(arrays, array, what,
            [&](DiskArray& open) { blocks_all<false>(open, begin, end, memory, stride_bytes).wait(); });
}

int oc_dra_write_blocks_all_async(int array, const int64_t* begin, const int64_t* end, const void* memory,
                                  const int64_t* stride_bytes, int64_t* request) {
  return begun(arrays, array, what, request,
               [&](DiskArray& open) { return blocks_all<true>(open, begin, end, memory, stride_bytes); });
}

int oc_dra_read_blocks_all_async(int array, const int64_t* begin, const int64_t* end, void* memory,
                                 const int64_t* stride_bytes, int64_t* request) {
  return begun(arrays, array, what, request,
               [&](DiskArray& open) { return blocks_all<false>(open, begin, end, memory, stride_bytes); });
}

int oc_dra_get(int array, const int64_t* begin, const int64_t* end, void* memory,
               const int64_t* stride_bytes) {
  return on(arrays, array, what, [&](DiskArray& open) {
    const Patch patch(open, begin, end, memory, stride_bytes, "get");
    open.get(patch.box, patch.memory);
  });
}

int oc_dra_put(int array, const int64_t* begin, const int64_t* end, const void* memory,
               const int64_t* stride_bytes) {
  return on(arrays, array, what, [&](DiskArray& open) {
    const Patch patch(open, begin, end, memory, stride_bytes, "put");
    open.put(patch.box, patch.memory);
  });
}

int oc_dra_acc(int array, const int64_t* begin, const int64_t* end, const void* memory,
               const int64_t* stride_bytes, const void* alpha) {
  return on(arrays, array, what, [&](DiskArray& open) {
    const Patch patch(open, begin, end, memory, stride_bytes, "accumulate");
    open.accumulate(patch.box, patch.memory, alpha);
  });
}

int oc_dra_get_async(int array, const int64_t* begin, const int64_t* end, void* memory,
                     const int64_t* stride_bytes, int64_t* request) {
  return begun(arrays, array, what, request, [&](DiskArray& open) {
    const Patch patch(open, begin, end, memory, stride_bytes, "get");
    return open.get_async(patch.box, patch.memory);
  });
}

int oc_dra_put_async(int array, const int64_t* begin, const int64_t* end, const void* memory,
                     const int64_t* stride_bytes, int64_t* request) {
  return begun(arrays, array, what, request, [&](DiskArray& open) {
    const Patch patch(open, begin, end, memory, stride_bytes, "put");
    return open.put_async(patch.box, patch.memory);
  });
}

int oc_dra_acc_async(int array, const int64_t* begin, const int64_t* end, const void* memory,
                     const int64_t* stride_bytes, const void* alpha, int64_t* request) {
  return begun(arrays, array, what, request, [&](DiskArray& open) {
    const Patch patch(open, begin, end, memory, stride_bytes, "accumulate");
    return open.accumulate_async(patch.box, patch.memory, alpha);
  });
}

int oc_dra_prefetch(int array, const int64_t* begin, const int64_t* end) {
  return on(arrays, array, what, [&](DiskArray& open) {
    const outcore::Box box = box_of(open.shape().rank(), begin, end, "prefetch");
    open.prefetch(std::span(&box, 1));
  });
}

int oc_dra_sync(int array) {
  return on(arrays, array, what, [](DiskArray& open) { open.sync(); });
}

int oc_dra_flush(int array, const char* metadata) {
  return on(arrays, array, what, [&](DiskArray& open) {
    if (metadata)
      open.flush([&] { return kept_metadata(metadata, "flush disk array"); });
    else
      open.flush();
  });
}

int oc_dra_close(int array) {
  return guarded([&] {
    arrays.take(array, EBADF, what).thing->close();
    return OC_OK;
  });
}

int oc_dra_delete(int array) {
  return guarded([&] {
    arrays.take(array, EBADF, what).thing->remove();
    return OC_OK;
  });
}

}  // extern "C"
