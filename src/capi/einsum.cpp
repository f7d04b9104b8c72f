// The C interface of contractions.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "capi/arrays.hpp"
#include "outcore/outcore.h"
#include "tensor/contraction.hpp"
#include "tensor/program_blas.hpp"

namespace outcore::capi {
namespace {

constexpr const char* attempted = "einsum";

/// The arrays of handles, which live as long as this object.
struct Held {
  std::vector<InWorld<GlobalArray>> global;
  std::vector<InWorld<DiskArray>> disk;

  tensor::Operand operand(const oc_operand& given) {
    switch (given.kind) {
      case OC_OPERAND_GLOBAL:
        global.push_back(global_array_of(given.array));
        return {.global = global.back().thing.get()};
      case OC_OPERAND_DISK:
        disk.push_back(disk_array_of(given.array));
        return {.disk = disk.back().thing.get()};
      case OC_OPERAND_MEMORY:
        break;
      default:
        invalid(attempted, "the kind of an operand is none of OC_OPERAND_*");
    }
    const Extents shape = extents_of(given.rank, given.shape, attempted);
    for (const std::int64_t extent : shape.values())
      if (extent < 0) invalid(attempted, "an extent of an operand is negative");
    const ElementType type = element_type_of(given.type, attempted);
    return {.memory =
                strided_of(given.memory, given.stride_bytes, Box::whole(shape), size_bytes(type), attempted),
            .shape = shape,
            .type = type};
  }
};

tensor::MakeArguments arguments(Held& held, const char* subscripts, int count, const oc_operand* operands,
                                const oc_operand* result, const oc_einsum_options* given) {
  return [=, &held] {
    if (!subscripts) invalid(attempted, "the subscripts are NULL");
    if (count < 1 || !operands) invalid(attempted, "there are no operands");
    if (!result) invalid(attempted, "there is no result");
    const oc_einsum_options options = options_of(given, attempted);
    tensor::ContractionArguments found{.subscripts = subscripts, .operands = {}, .out = {}, .options = {}};
    for (int i = 0; i < count; ++i) found.operands.push_back(held.operand(operands[i]));
    found.out = held.operand(*result);
    found.options = {.memory_bytes = options.memory_bytes,
                     .plan = options.plan ? options.plan : "",
                     .scale = options.scale,
                     .accumulate = options.accumulate != 0,
                     .threads = options.threads == 0 ? 1 : options.threads};
    return found;
  };
}

}  // namespace
}  // namespace outcore::capi

using namespace outcore;
using namespace outcore::capi;

extern "C" {

int oc_einsum(int world, const char* subscripts, int count, const oc_operand* operands,
              const oc_operand* result, const oc_einsum_options* options, oc_einsum_counts* counts) {
  return guarded([&] {
    const auto its_world = world_of(world);
    Held held;
    const EinsumCounts found = tensor::contract(
        *its_world, tensor::program_blas(), arguments(held, subscripts, count, operands, result, options));
    if (counts) {
      const oc_einsum_counts known{.size = counts->size,
                                   .disk_read_bytes = found.disk_read_bytes,
                                   .disk_written_bytes = found.disk_written_bytes,
                                   .network_bytes = found.network_bytes,
                                   .copied_bytes = found.copied_bytes,
                                   .flops = found.flops};
      std::memcpy(counts, &known, std::min(counts->size, sizeof known));
    }
    return OC_OK;
  });
}

int oc_einsum_plan(int world, const char* subscripts, int count, const oc_operand* operands,
                   const oc_operand* result, const oc_einsum_options* options, char* text, std::size_t size,
                   std::int64_t* bytes) {
  return guarded([&] {
    const auto its_world = world_of(world);
    Held held;
    hand_out(
        tensor::plan_of(*its_world, arguments(held, subscripts, count, operands, result, options)).text(),
        text, size, bytes);
    return OC_OK;
  });
}

}  // extern "C"
