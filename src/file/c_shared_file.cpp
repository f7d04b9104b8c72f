// The C interface of worlds and shared files.

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "file/c_handles.hpp"
#include "outcore/file/shared_file.hpp"
#include "outcore/outcore.h"
#include "outcore/world.hpp"

namespace {

using outcore::Error;
using outcore::Placement;
using outcore::World;
using outcore::file::SharedFile;
using outcore::file::SharedFileOptions;
using namespace outcore::file::c;

/// A file, and the world that it needs as long as it lives.
struct OpenFile {
  std::shared_ptr<World> world;
  std::shared_ptr<SharedFile> file;
};

struct Outstanding {
  SharedFile::Request request;
  std::shared_ptr<SharedFile> file;
};

// Leaked: at exit, nothing that is collective happens any more.
auto& worlds = *new Table<int, std::shared_ptr<World>>;
auto& files = *new Table<int, OpenFile>;
auto& requests = *new Table<std::int64_t, Outstanding>;

std::shared_ptr<SharedFile> file_of(int file) {
  return files.get(file, EBADF, "file").file;
}

template <class Transport>
int make_world(const oc_world_options* options, int* world, Transport transport) {
  return guarded([&] {
    if (!world) invalid("make a world", "world is NULL");
    const oc_world_options given = options ? *options : oc_world_options{};
    *world = worlds.add(std::make_shared<World>(
        transport(), outcore::WorldOptions{.memory_bytes = given.memory_bytes,
                                           .scratch = given.scratch ? given.scratch : "",
                                           .node_for_each_process = given.node_for_each_process != 0}));
    return OC_OK;
  });
}

Placement placement_of(int placement) {
  switch (placement) {
    case OC_PLACEMENT_AUTOMATIC:
      return Placement::automatic;
    case OC_PLACEMENT_SHARED:
      return Placement::shared;
    case OC_PLACEMENT_LOCAL:
      return Placement::local;
    default:
      invalid("create shared file", "placement is none of OC_PLACEMENT_*");
  }
}

SharedFileOptions translate(const oc_sf_options& options) {
  return {.hard_limit_bytes = options.hard_limit_bytes,
          .soft_limit_bytes = options.soft_limit_bytes,
          .reserve = options.reserve != 0,
          .typical_request_bytes = options.typical_request_bytes,
          .placement = placement_of(options.placement),
          .components_per_node = options.components_per_node,
          .cache = cache_of(options.cache)};
}

}  // namespace

extern "C" {

int oc_world_self(const oc_world_options* options, int* world) {
  return make_world(options, world, [] { return outcore::transport::self(); });
}

int oc_world_mpi(int communicator, const oc_world_options* options, int* world) {
  return make_world(options, world, [&] { return outcore::transport::mpi(communicator); });
}

int oc_world_rank(int world, int* rank, int* size) {
  return guarded([&] {
    const auto found = worlds.get(world, EBADF, "world");
    if (rank) *rank = found->rank();
    if (size) *size = found->size();
    return OC_OK;
  });
}

int oc_world_barrier(int world) {
  return guarded([&] {
    worlds.get(world, EBADF, "world")->barrier();
    return OC_OK;
  });
}

int oc_world_close(int world) {
  return guarded([&] {
    worlds.take(world, EBADF, "world")->close();
    return OC_OK;
  });
}

int oc_sf_create(int world, const char* name, const oc_sf_options* options, int* file) {
  return guarded([&] {
    if (!file) invalid("create shared file", "file is NULL");
    auto its_world = worlds.get(world, EBADF, "world");
    auto made =
        std::make_shared<SharedFile>(*its_world, [&](std::string& its_name, SharedFileOptions& its_options) {
          if (!name) invalid("create shared file", "name is NULL");
          its_name = name;
          its_options = translate(options ? *options : oc_sf_options{});
        });
    *file = files.add({std::move(its_world), std::move(made)});
    return OC_OK;
  });
}

int oc_sf_write(int file, int64_t offset, const void* buffer, int64_t bytes) {
  return guarded([&] {
    file_of(file)->write(memory(buffer, bytes), offset);
    return OC_OK;
  });
}

int oc_sf_read(int file, int64_t offset, void* buffer, int64_t bytes) {
  return guarded([&] {
    file_of(file)->read(memory(buffer, bytes), offset);
    return OC_OK;
  });
}

int oc_sf_awrite(int file, int64_t offset, const void* buffer, int64_t bytes, int64_t* request) {
  return guarded([&] {
    if (!request) invalid("write", "request is NULL");
    auto open = file_of(file);
    auto begun = open->async_write(memory(buffer, bytes), offset);
    *request = requests.add({std::move(begun), std::move(open)});
    return OC_OK;
  });
}

int oc_sf_aread(int file, int64_t offset, void* buffer, int64_t bytes, int64_t* request) {
  return guarded([&] {
    if (!request) invalid("read", "request is NULL");
    auto open = file_of(file);
    auto begun = open->async_read(memory(buffer, bytes), offset);
    *request = requests.add({std::move(begun), std::move(open)});
    return OC_OK;
  });
}

int oc_sf_wait(int64_t request) {
  return guarded([&] {
    requests.take(request, EINVAL, "request").request.wait();
    return OC_OK;
  });
}

int oc_sf_waitall(int count, const int64_t* list) {
  return guarded([&] {
    if (count < 0 || (!list && count > 0)) invalid("wait", "there is no list of requests");
    std::exception_ptr first;
    for (int i = 0; i < count; ++i) try {
        requests.take(list[i], EINVAL, "request").request.wait();
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    if (first) std::rethrow_exception(first);
    return OC_OK;
  });
}

int oc_sf_probe(int64_t request, int* done) {
  return guarded([&] {
    if (!done) invalid("probe", "done is NULL");
    *done = requests.get(request, EINVAL, "request").request.done();
    return OC_OK;
  });
}

int oc_sf_length(int file, int64_t* bytes) {
  return guarded([&] {
    if (!bytes) invalid("ask for the length", "bytes is NULL");
    *bytes = file_of(file)->length();
    return OC_OK;
  });
}

int oc_sf_sync(int file) {
  return guarded([&] {
    file_of(file)->sync();
    return OC_OK;
  });
}

int oc_sf_flush(int file) {
  return guarded([&] {
    file_of(file)->flush();
    return OC_OK;
  });
}

int oc_sf_close(int file) {
  return guarded([&] {
    files.take(file, EBADF, "file").file->close();
    return OC_OK;
  });
}

int oc_sf_destroy(int file) {
  return guarded([&] {
    files.take(file, EBADF, "file").file->destroy();
    return OC_OK;
  });
}

int oc_sf_stat(int file, int64_t* free_bytes, char* type, size_t type_size) {
  return guarded([&] {
    report(outcore::device::file_system(file_of(file)->stored().directory()), free_bytes, type, type_size);
    return OC_OK;
  });
}

const char* oc_sf_strerror(int code) {
  return text_of(code);
}

}  // extern "C"
