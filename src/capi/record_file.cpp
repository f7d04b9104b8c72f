// The C interface of record files.

#include "outcore/record_file.hpp"

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "capi/handles.hpp"
#include "capi/requests.hpp"
#include "outcore/outcore.h"
#include "outcore/world.hpp"

namespace {

using outcore::Error;
using outcore::World;
using outcore::file::RecordFile;
using outcore::file::RecordFileOptions;
using namespace outcore::capi;

/// A file, and its world, which it needs as long as it lives.
struct OpenFile {
  std::shared_ptr<World> world;
  std::shared_ptr<RecordFile> file;
};

// Leaked: at exit no collective calls are possible any more.
auto& files = *new Table<int, OpenFile>;

OpenFile open_file(int file) {
  return files.get(file, EBADF, "file");
}

RecordFileOptions translate(const oc_rf_options& options) {
  return {.records = options.records,
          .hard_limit_bytes = options.hard_limit_bytes,
          .soft_limit_bytes = options.soft_limit_bytes,
          .typical_record_bytes = options.typical_record_bytes,
          .placement = placement_of(options.placement, "create record file"),
          .page_cache = page_cache_of(options.page_cache)};
}

/// Runs a call on an open file.
template <class Body>
int on(int file, Body body) {
  return guarded([&] {
    body(*open_file(file).file);
    return OC_OK;
  });
}

/// Begins a request and gives it a number.
template <class Begin>
int begun(int file, std::int64_t* request, const char* attempted, Begin begin) {
  return guarded([&] {
    if (!request) invalid(attempted, "request is NULL");
    auto open = open_file(file);
    auto its_request = begin(*open.file);
    *request = number_of({std::move(its_request), std::make_shared<OpenFile>(std::move(open))});
    return OC_OK;
  });
}

/// Stores a number, which exists if the record does.
void report(const RecordFile& file, std::int64_t record, std::optional<std::int64_t> found,
            std::int64_t* bytes) {
  if (!found)
    throw Error(ENOENT, {.attempted = "ask for record " + std::to_string(record) + " of " + file.name(),
                         .detail = "there is none"});
  *bytes = *found;
}

}  // namespace

extern "C" {

int oc_rf_create(int world, const char* name, const oc_rf_options* options, int* file) {
  return guarded([&] {
    auto its_world = world_of(world);
    auto made =
        std::make_shared<RecordFile>(*its_world, [&](std::string& its_name, RecordFileOptions& its_options) {
          if (!file) invalid("create record file", "file is NULL");  // in the gate, so all processes get it
          if (!name) invalid("create record file", "name is NULL");
          its_name = name;
          its_options = translate(options_of(options, "create record file"));
        });
    *file = files.add({std::move(its_world), std::move(made)});
    return OC_OK;
  });
}

int oc_rf_put(int file, int64_t record, const void* buffer, int64_t bytes) {
  return on(file, [&](RecordFile& open) { open.put(record, memory(buffer, bytes)); });
}

int oc_rf_get(int file, int64_t record, void* buffer, int64_t bytes, int64_t* size) {
  return on(file, [&](RecordFile& open) {
    const std::int64_t its_size = open.get(record, memory(buffer, bytes));
    if (size) *size = its_size;
  });
}

int oc_rf_put_async(int file, int64_t record, const void* buffer, int64_t bytes, int64_t* request) {
  return begun(file, request, "put record",
               [&](RecordFile& open) { return open.put_async(record, memory(buffer, bytes)); });
}

int oc_rf_get_async(int file, int64_t record, void* buffer, int64_t bytes, int64_t* request) {
  return begun(file, request, "get record",
               [&](RecordFile& open) { return open.get_async(record, memory(buffer, bytes)); });
}

int oc_rf_size(int file, int64_t record, int64_t* bytes) {
  return on(file, [&](RecordFile& open) {
    if (!bytes) invalid("ask for the size of a record", "bytes is NULL");
    report(open, record, open.size(record), bytes);
  });
}

int oc_rf_capacity(int file, int64_t record, int64_t* bytes) {
  return on(file, [&](RecordFile& open) {
    if (!bytes) invalid("ask for the capacity of a record", "bytes is NULL");
    report(open, record, open.capacity(record), bytes);
  });
}

int oc_rf_erase(int file, int64_t record) {
  return on(file, [&](RecordFile& open) { open.erase(record); });
}

int oc_rf_sync(int file) {
  return on(file, [](RecordFile& open) { open.sync(); });
}

int oc_rf_flush(int file) {
  return on(file, [](RecordFile& open) { open.flush(); });
}

int oc_rf_close(int file) {
  return guarded([&] {
    files.take(file, EBADF, "file").file->close();
    return OC_OK;
  });
}

}  // extern "C"
