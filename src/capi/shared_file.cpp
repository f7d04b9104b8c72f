// The C interface of shared files.

#include "outcore/shared_file.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capi/handles.hpp"
#include "capi/requests.hpp"
#include "dio/stripes/striped_file.hpp"
#include "outcore/outcore.h"
#include "outcore/world.hpp"

namespace {

using outcore::World;
using outcore::file::SharedFile;
using outcore::file::SharedFileOptions;
using namespace outcore::capi;

/// A file, and its world, which it needs as long as it lives.
struct OpenFile {
  std::shared_ptr<World> world;
  std::shared_ptr<SharedFile> file;
};

// Leaked: at exit no collective calls are possible any more.
auto& files = *new Table<int, OpenFile>;

std::shared_ptr<SharedFile> file_of(int file) {
  return files.get(file, EBADF, "file").file;
}

SharedFileOptions translate(const oc_sf_options& options) {
  return {.hard_limit_bytes = options.hard_limit_bytes,
          .soft_limit_bytes = options.soft_limit_bytes,
          .reserve = options.reserve != 0,
          .typical_request_bytes = options.typical_request_bytes,
          .placement = placement_of(options.placement, "create shared file"),
          .components_per_node = options.components_per_node,
          .page_cache = page_cache_of(options.page_cache),
          .client_cache_bytes = options.client_cache_bytes};
}

/// The ranges of a list, as those of a SharedFile.
template <class Range>
std::vector<Range> ranges_of(int count, const oc_sf_range* ranges, const char* attempted) {
  if (count < 0 || (!ranges && count > 0)) invalid(attempted, "there is no list of ranges");
  std::vector<Range> list;
  for (const oc_sf_range& range : std::span(ranges, static_cast<std::size_t>(count)))
    list.push_back({.offset = range.offset, .memory = memory(range.buffer, range.bytes)});
  return list;
}

/// Begins a request and gives it a number.
template <class Begin>
int begun(int file, std::int64_t* request, const char* attempted, Begin begin) {
  return guarded([&] {
    if (!request) invalid(attempted, "request is NULL");
    auto open = file_of(file);
    auto its_request = begin(*open);
    *request = number_of({std::move(its_request), std::move(open)});
    return OC_OK;
  });
}

}  // namespace

extern "C" {

int oc_sf_create(int world, const char* name, const oc_sf_options* options, int* file) {
  return guarded([&] {
    auto its_world = world_of(world);
    auto made =
        std::make_shared<SharedFile>(*its_world, [&](std::string& its_name, SharedFileOptions& its_options) {
          if (!file) invalid("create shared file", "file is NULL");  // in the gate, so all processes get it
          if (!name) invalid("create shared file", "name is NULL");
          its_name = name;
          its_options = translate(options_of(options, "create shared file"));
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

int oc_sf_write_async(int file, int64_t offset, const void* buffer, int64_t bytes, int64_t* request) {
  return begun(file, request, "write",
               [&](SharedFile& open) { return open.write_async(memory(buffer, bytes), offset); });
}

int oc_sf_read_async(int file, int64_t offset, void* buffer, int64_t bytes, int64_t* request) {
  return begun(file, request, "read",
               [&](SharedFile& open) { return open.read_async(memory(buffer, bytes), offset); });
}

int oc_sf_writev(int file, int count, const oc_sf_range* ranges) {
  return guarded([&] {
    file_of(file)->write(ranges_of<SharedFile::WriteRange>(count, ranges, "write"));
    return OC_OK;
  });
}

int oc_sf_readv(int file, int count, const oc_sf_range* ranges) {
  return guarded([&] {
    file_of(file)->read(ranges_of<SharedFile::ReadRange>(count, ranges, "read"));
    return OC_OK;
  });
}

int oc_sf_writev_async(int file, int count, const oc_sf_range* ranges, int64_t* request) {
  return begun(file, request, "write", [&](SharedFile& open) {
    return open.write_async(ranges_of<SharedFile::WriteRange>(count, ranges, "write"));
  });
}

int oc_sf_readv_async(int file, int count, const oc_sf_range* ranges, int64_t* request) {
  return begun(file, request, "read", [&](SharedFile& open) {
    return open.read_async(ranges_of<SharedFile::ReadRange>(count, ranges, "read"));
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

}  // extern "C"
