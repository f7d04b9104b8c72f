// The C interface of worlds, and of the counters and locks of their processes.

#include "outcore/world.hpp"

#include <cerrno>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "capi/arrays.hpp"
#include "capi/handles.hpp"
#include "outcore/extend/transport.hpp"
#include "outcore/outcore.h"

namespace outcore::capi {
namespace {

// Leaked: at exit no collective calls are possible any more.
auto& worlds = *new Table<int, std::shared_ptr<World>>;
auto& counters = *new Table<int, InWorld<Counter>>;
auto& locks = *new Table<int, InWorld<Lock>>;

template <class Transport>
int make_world(const oc_world_options* options, int* world, Transport transport) {
  return guarded([&] {
    auto made = std::make_shared<World>(transport(), [&]() -> WorldOptions {
      if (!world) invalid("make a world", "world is NULL");  // in the gate, so all processes get it
      const oc_world_options given = options_of(options, "make a world");
      return {.memory_bytes = given.memory_bytes,
              .scratch = given.scratch ? given.scratch : "",
              .node_for_each_process = given.node_for_each_process != 0};
    });
    *world = worlds.add(std::move(made));
    return OC_OK;
  });
}

template <class Thing>
int make_in_world(Table<int, InWorld<Thing>>& table, int world, int* handle, const char* attempted) {
  return guarded([&] {
    auto its_world = world_of(world);
    its_world->together(attempted, 0, [&] {
      if (!handle) invalid(attempted, "there is no place for the handle");
    });
    auto made = std::make_shared<Thing>(*its_world);
    *handle = table.add({std::move(its_world), std::move(made)});
    return OC_OK;
  });
}

/// Commits and closes persistent arrays that are still open. If another process ends by an error, or makes
/// another collective call, no process commits.
void close_arrays(World& world) {
  Closers closers = unclosed_disk_arrays(world);
  for (auto& each : unclosed_sparse_arrays(world)) closers.push_back(std::move(each));
  if (closers.empty()) return;
  const std::size_t count = closers.size();
  world.enter("close a world with open arrays", fingerprint(std::as_bytes(std::span(&count, 1))));
  std::exception_ptr failure;
  for (const auto& close : closers) try {
      close();
    } catch (const Error&) {  // at all processes
      if (!failure) failure = std::current_exception();
    }
  if (failure) std::rethrow_exception(failure);
}

transport::Reduction reduction_of(int operation) {
  switch (operation) {
    case OC_SUM:
      return transport::Reduction::sum;
    case OC_MIN:
      return transport::Reduction::min;
    case OC_MAX:
      return transport::Reduction::max;
    default:
      invalid("reduce", "the operation is none of OC_SUM, OC_MIN, OC_MAX");
  }
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

int oc_world_job(const oc_world_options* options, int* world) {
  return make_world(options, world, [] { return outcore::transport::job(); });
}

int oc_world_split(int whole, int color, int key, int* part) {
  return guarded([&] {
    const auto its_world = world_of(whole);
    its_world->together("split a world", 0, [&] {
      if (!part) invalid("split a world", "part is NULL");
    });
    std::shared_ptr<outcore::World> made = its_world->split(color, key);
    *part = made ? worlds.add(std::move(made)) : 0;
    return OC_OK;
  });
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

int oc_world_reduce(int world, int type, int64_t count, void* values, int operation) {
  return guarded([&] {
    const auto its_world = world_of(world);
    const std::int64_t agreed[] = {type, count, operation};
    its_world->together("reduce", outcore::fingerprint(std::as_bytes(std::span(agreed))), [&] {
      if (type != OC_FLOAT64 && type != OC_INT64)
        invalid("reduce", "the type is neither OC_FLOAT64 nor OC_INT64");
      if (count < 0 || (count > 0 && !values)) invalid("reduce", "there are no values");
      (void)reduction_of(operation);
    });
    const auto number = static_cast<std::size_t>(count);
    if (type == OC_FLOAT64)
      its_world->transport().all_reduce(std::span(static_cast<double*>(values), number),
                                        reduction_of(operation));
    else
      its_world->transport().all_reduce(std::span(static_cast<std::int64_t*>(values), number),
                                        reduction_of(operation));
    return OC_OK;
  });
}

int oc_world_close(int world) {
  return guarded([&] {
    const auto its_world = worlds.take(world, EBADF, "world");
    try {
      close_arrays(*its_world);
    } catch (const outcore::Error&) {
      its_world->close();
      throw;
    }
    its_world->close();
    return OC_OK;
  });
}

int oc_counter_create(int world, int* counter) {
  return make_in_world(counters, world, counter, "make a counter");
}

int oc_counter_next(int counter, int64_t count, int64_t* before) {
  return on(counters, counter, "counter", [&](outcore::Counter& open) {
    if (!before) invalid("count", "before is NULL");
    *before = open.next(count);
  });
}

int oc_counter_reset(int counter) {
  return on(counters, counter, "counter", [](outcore::Counter& open) { open.reset(); });
}

int oc_counter_close(int counter) {
  return guarded([&] {
    (void)counters.take(counter, EBADF, "counter");
    return OC_OK;
  });
}

int oc_lock_create(int world, int* lock) {
  return make_in_world(locks, world, lock, "make a lock");
}

int oc_lock_lock(int lock) {
  return on(locks, lock, "lock", [](outcore::Lock& open) { open.lock(); });
}

int oc_lock_unlock(int lock) {
  return on(locks, lock, "lock", [](outcore::Lock& open) { open.unlock(); });
}

int oc_lock_close(int lock) {
  return guarded([&] {
    (void)locks.take(lock, EBADF, "lock");
    return OC_OK;
  });
}

}  // extern "C"
