// The C interface of worlds.

#include "outcore/world.hpp"

#include <cerrno>
#include <memory>

#include "capi/handles.hpp"
#include "outcore/outcore.h"

namespace outcore::capi {
namespace {

// Leaked: at exit, nothing that is collective happens any more.
auto& worlds = *new Table<int, std::shared_ptr<World>>;

template <class Transport>
int make_world(const oc_world_options* options, int* world, Transport transport) {
  return guarded([&] {
    if (!world) invalid("make a world", "world is NULL");
    const oc_world_options given = options ? *options : oc_world_options{};
    *world = worlds.add(std::make_shared<World>(
        transport(), WorldOptions{.memory_bytes = given.memory_bytes,
                                  .scratch = given.scratch ? given.scratch : "",
                                  .node_for_each_process = given.node_for_each_process != 0}));
    return OC_OK;
  });
}

}  // namespace

std::shared_ptr<World> world_of(int world) {
  return worlds.get(world, EBADF, "world");
}

Placement placement_of(int placement, const char* attempted) {
  switch (placement) {
    case OC_PLACEMENT_AUTO:
      return Placement::automatic;
    case OC_PLACEMENT_SHARED:
      return Placement::shared;
    case OC_PLACEMENT_LOCAL:
      return Placement::local;
    default:
      invalid(attempted, "placement is none of OC_PLACEMENT_*");
  }
}

}  // namespace outcore::capi

using namespace outcore::capi;

extern "C" {

int oc_world_self(const oc_world_options* options, int* world) {
  return make_world(options, world, [] { return outcore::transport::self(); });
}

int oc_world_mpi(int communicator, const oc_world_options* options, int* world) {
  return make_world(options, world, [&] { return outcore::transport::mpi(communicator); });
}

int oc_world_rank(int world, int* rank, int* size) {
  return guarded([&] {
    const auto found = world_of(world);
    if (rank) *rank = found->rank();
    if (size) *size = found->size();
    return OC_OK;
  });
}

int oc_world_barrier(int world) {
  return guarded([&] {
    world_of(world)->barrier();
    return OC_OK;
  });
}

int oc_world_close(int world) {
  return guarded([&] {
    worlds.take(world, EBADF, "world")->close();
    return OC_OK;
  });
}

}  // extern "C"
