// The C interface of global arrays.

#include "outcore/global_array.hpp"

#include <cstring>
#include <vector>

#include "capi/array_mathematics.hpp"
#include "capi/array_product.hpp"
#include "capi/arrays.hpp"
#include "outcore/distribution.hpp"
#include "outcore/outcore.h"

namespace outcore::capi {
namespace {

constexpr const char* what = "global array";

// Leaked: at exit no collective calls are possible any more.
auto& arrays = *new Table<int, InWorld<GlobalArray>>;

std::vector<std::vector<std::int64_t>> begins_of(int rank, const oc_ga_options& options,
                                                 const char* attempted) {
  const Extents counts = extents_of(rank, options.blocks, attempted);
  if (!options.begins) invalid(attempted, "begins is NULL");
  std::vector<std::vector<std::int64_t>> begins;
  const std::int64_t* next = options.begins;
  for (const std::int64_t count : counts.values()) {
    if (count < 1) invalid(attempted, "a dimension has no blocks");
    begins.emplace_back(next, next + count);
    next += count;
  }
  return begins;
}

Distribution distribution_of(const Extents& shape, int processes, const oc_ga_options& options,
                             const char* attempted) {
  switch (options.distribution) {
    case OC_DISTRIBUTION_REGULAR:
      return Distribution::regular(shape, processes);
    case OC_DISTRIBUTION_IRREGULAR:
      return Distribution::irregular(shape, processes, begins_of(shape.rank(), options, attempted));
    case OC_DISTRIBUTION_BLOCK_CYCLIC:
      return Distribution::block_cyclic(
          shape, processes, extents_of(shape.rank(), options.blocks, attempted),
          options.grid ? std::optional(extents_of(shape.rank(), options.grid, attempted)) : std::nullopt);
    default:
      invalid(attempted, "the distribution is none of OC_DISTRIBUTION_*");
  }
}

/// Box and memory of one transfer.
struct Patch {
  Box box;
  Strided memory;
  Patch(const GlobalArray& array, const std::int64_t* begin, const std::int64_t* end, const void* its_memory,
        const std::int64_t* stride_bytes, const char* attempted)
      : box(box_of(array.shape().rank(), begin, end, attempted)),
        memory(strided_of(its_memory, stride_bytes, box, array.element_bytes(), attempted)) {}
};

/// The indices of single elements, and their memory.
std::span<const std::int64_t> indices_of(const GlobalArray& array, std::int64_t count,
                                         const std::int64_t* indices, const void* memory,
                                         const char* attempted) {
  if (count < 0) invalid(attempted, "the number of elements is negative");
  if (count > 0 && (!indices || !memory)) invalid(attempted, "indices or memory is NULL");
  return {indices, static_cast<std::size_t>(count) * static_cast<std::size_t>(array.shape().rank())};
}

}  // namespace

InWorld<GlobalArray> global_array_of(int array) {
  return arrays.get(array, EBADF, what);
}

InWorld<GlobalArray> global_array_in(World& world, int array) {
  InWorld<GlobalArray> found;
  world.together("use a global array", 0, [&] { found = global_array_of(array); });
  return found;
}

}  // namespace outcore::capi

using namespace outcore::capi;
using outcore::GlobalArray;

extern "C" {

int oc_ga_create(int world, int type, int rank, const int64_t* shape, const oc_ga_options* options,
                 int* array) {
  return guarded([&] {
    auto its_world = world_of(world);
    auto made = std::make_shared<GlobalArray>(*its_world, [&](outcore::ElementType& its_type) {
      constexpr const char* attempted = "create global array";
      if (!array) invalid(attempted, "array is NULL");  // in the gate, so all processes get it
      its_type = element_type_of(type, attempted);
      return distribution_of(extents_of(rank, shape, attempted), its_world->size(),
                             options_of(options, attempted), attempted);
    });
    *array = arrays.add({std::move(its_world), std::move(made)});
    return OC_OK;
  });
}

int oc_ga_inquire(int array, int* type, int* rank, int64_t* shape) {
  return on(arrays, array, what, [&](GlobalArray& open) {
    if (type) *type = static_cast<int>(open.type());
    if (rank) *rank = open.shape().rank();
    hand_out(open.shape(), shape);
  });
}

int oc_ga_distribution(int array, int process, int64_t* begin, int64_t* end) {
  return on(arrays, array, what, [&](GlobalArray& open) {
    if (process < 0 || process >= open.world().size()) invalid("ask for a patch", "there is no such process");
    const outcore::Box patch = open.distribution().patch(process);
    hand_out(patch.begin, begin);
    hand_out(patch.end, end);
  });
}

int oc_ga_owner(int array, const int64_t* index, int* process) {
  return on(arrays, array, what, [&](GlobalArray& open) {
    if (!process) invalid("ask for an owner", "process is NULL");
    *process = open.distribution().owner(extents_of(open.shape().rank(), index, "ask for an owner"));
  });
}

int oc_ga_local(int array, void** memory, int64_t* shape, int64_t* stride_bytes) {
  return on(arrays, array, what, [&](GlobalArray& open) {
    if (!memory) invalid("ask for the local part", "memory is NULL");
    const outcore::Strided local = open.local();
    *memory = local.data;
    hand_out(open.distribution().local_shape(open.world().rank()), shape);
    hand_out(local.stride_bytes, stride_bytes);
  });
}

int oc_ga_get(int array, const int64_t* begin, const int64_t* end, void* memory,
              const int64_t* stride_bytes) {
  return on(arrays, array, what, [&](GlobalArray& open) {
    const Patch patch(open, begin, end, memory, stride_bytes, "get");
    open.get(patch.box, patch.memory);
  });
}

int oc_ga_put(int array, const int64_t* begin, const int64_t* end, const void* memory,
              const int64_t* stride_bytes) {
  return on(arrays, array, what, [&](GlobalArray& open) {
    const Patch patch(open, begin, end, memory, stride_bytes, "put");
    open.put(patch.box, patch.memory);
  });
}

int oc_ga_acc(int array, const int64_t* begin, const int64_t* end, const void* memory,
              const int64_t* stride_bytes, const void* alpha) {
  return on(arrays, array, what, [&](GlobalArray& open) {
    const Patch patch(open, begin, end, memory, stride_bytes, "accumulate");
    open.accumulate(patch.box, patch.memory, alpha);
  });
}

int oc_ga_get_async(int array, const int64_t* begin, const int64_t* end, void* memory,
                    const int64_t* stride_bytes, int64_t* request) {
  return begun(arrays, array, what, request, [&](GlobalArray& open) {
    const Patch patch(open, begin, end, memory, stride_bytes, "get");
    return open.get_async(patch.box, patch.memory);
  });
}

int oc_ga_put_async(int array, const int64_t* begin, const int64_t* end, const void* memory,
                    const int64_t* stride_bytes, int64_t* request) {
  return begun(arrays, array, what, request, [&](GlobalArray& open) {
    const Patch patch(open, begin, end, memory, stride_bytes, "put");
    return open.put_async(patch.box, patch.memory);
  });
}

int oc_ga_acc_async(int array, const int64_t* begin, const int64_t* end, const void* memory,
                    const int64_t* stride_bytes, const void* alpha, int64_t* request) {
  return begun(arrays, array, what, request, [&](GlobalArray& open) {
    const Patch patch(open, begin, end, memory, stride_bytes, "accumulate");
    return open.accumulate_async(patch.box, patch.memory, alpha);
  });
}

int oc_ga_gather(int array, int64_t count, const int64_t* indices, void* memory) {
  return on(arrays, array, what, [&](GlobalArray& open) {
    open.gather(indices_of(open, count, indices, memory, "gather"), static_cast<std::byte*>(memory));
  });
}

int oc_ga_scatter(int array, int64_t count, const int64_t* indices, const void* memory) {
  return on(arrays, array, what, [&](GlobalArray& open) {
    open.scatter(indices_of(open, count, indices, memory, "scatter"), static_cast<const std::byte*>(memory));
  });
}

int oc_ga_scatter_acc(int array, int64_t count, const int64_t* indices, const void* memory,
                      const void* alpha) {
  return on(arrays, array, what, [&](GlobalArray& open) {
    open.scatter_accumulate(indices_of(open, count, indices, memory, "scatter"),
                            static_cast<const std::byte*>(memory), alpha);
  });
}

int oc_ga_read_increment(int array, const int64_t* index, int64_t value, int64_t* before) {
  return on(arrays, array, what, [&](GlobalArray& open) {
    const auto found =
        open.read_increment(extents_of(open.shape().rank(), index, "read and increment"), value);
    if (before) *before = found;
  });
}

int oc_ga_fill(int array, const void* value) {
  return on(arrays, array, what, [&](GlobalArray& open) { fill(open, value); });
}

int oc_ga_copy(int from, int to) {
  return guarded([&] {
    const auto source = global_array_of(from);
    const auto target = global_array_in(*source.world, to);
    copy(*source.thing, *target.thing);
    return OC_OK;
  });
}

int oc_ga_dot(int a, int b, void* result) {
  return guarded([&] {
    const auto first = global_array_of(a);
    const auto second = global_array_in(*first.world, b);
    dot(*first.thing, *second.thing, result);
    return OC_OK;
  });
}

int oc_ga_gemm(int trans_a, int trans_b, const void* alpha, int a, int b, const void* beta, int c) {
  return guarded([&] {
    const auto result = global_array_of(c), left = global_array_in(*result.world, a),
               right = global_array_in(*result.world, b);
    multiply({*left.thing, trans_a}, {*right.thing, trans_b}, alpha, beta, *result.thing);
    return OC_OK;
  });
}

int oc_ga_sync(int array) {
  return on(arrays, array, what, [](GlobalArray& open) { open.sync(); });
}

int oc_ga_close(int array) {
  return guarded([&] {
    arrays.take(array, EBADF, what).thing->close();
    return OC_OK;
  });
}

}  // extern "C"
