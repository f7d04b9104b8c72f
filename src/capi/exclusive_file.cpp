// The C interface of exclusive access files: handles around ExclusiveFile.

#include "outcore/exclusive_file.hpp"

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>

#include "capi/handles.hpp"
#include "capi/requests.hpp"
#include "device/file.hpp"
#include "outcore/outcore.h"
#include "outcore/scratch.hpp"

namespace {

using outcore::file::ExclusiveFile;
using namespace outcore::capi;

// Leaked: at exit the file layer closes files that are open, without this table.
auto& files = *new Table<int, std::shared_ptr<ExclusiveFile>>;

const std::shared_ptr<ExclusiveFile>& file_of(int file) {
  return files.get_again(file, EBADF, "file");
}

outcore::file::ExclusiveFileOptions translate(const oc_eaf_options& options) {
  outcore::file::ExclusiveFileOptions result;
  if (options.scratch) result.scratch = options.scratch;
  result.keep = options.keep != 0;
  result.expected_bytes = options.expected_bytes;
  result.read_only = options.read_only != 0;
  result.page_cache = page_cache_of(options.page_cache);
  return result;
}

}  // namespace

extern "C" {

int oc_eaf_open(const char* name, const oc_eaf_options* options, int* file) {
  return guarded([&] {
    if (!name || !file) invalid("open", "name or file is NULL");
    *file = files.add(std::make_shared<ExclusiveFile>(name, translate(options_of(options, "open"))));
    return OC_OK;
  });
}

int oc_eaf_write(int file, int64_t offset, const void* buffer, int64_t bytes) {
  return guarded([&] {
    file_of(file)->write(memory(buffer, bytes), offset);
    return OC_OK;
  });
}

int oc_eaf_read(int file, int64_t offset, void* buffer, int64_t bytes, int64_t* moved) {
  return guarded([&] {
    const auto& open = file_of(file);
    return report_moved(open->path(), open->read(memory(buffer, bytes), offset), bytes, moved);
  });
}

int oc_eaf_write_async(int file, int64_t offset, const void* buffer, int64_t bytes, int64_t* request) {
  return guarded([&] {
    if (!request) invalid("write", "request is NULL");
    auto open = file_of(file);
    auto begun = open->write_async(memory(buffer, bytes), offset);
    *request = number_of({std::move(begun), open, bytes, open->path()});
    return OC_OK;
  });
}

int oc_eaf_read_async(int file, int64_t offset, void* buffer, int64_t bytes, int64_t* request) {
  return guarded([&] {
    if (!request) invalid("read", "request is NULL");
    auto open = file_of(file);
    auto begun = open->read_async(memory(buffer, bytes), offset);
    *request = number_of({std::move(begun), open, bytes, open->path()});
    return OC_OK;
  });
}

int oc_eaf_flush(int file) {
  return guarded([&] {
    file_of(file)->flush();
    return OC_OK;
  });
}

int oc_eaf_close(int file) {
  return guarded([&] {
    files.take(file, EBADF, "file")->close();
    return OC_OK;
  });
}

int oc_eaf_delete(int file) {
  return guarded([&] {
    const auto its = file_of(file);
    const auto end = [&] { (void)files.take(file, EBADF, "file"); };
    try {
      its->erase();
    } catch (...) {
      if (its->closed()) end();  // a file open to read only is refused, and stays open
      throw;
    }
    end();
    return OC_OK;
  });
}

int oc_eaf_length(int file, int64_t* bytes) {
  return guarded([&] {
    if (!bytes) invalid("ask for the length", "bytes is NULL");
    *bytes = file_of(file)->length();
    return OC_OK;
  });
}

int oc_eaf_truncate(int file, int64_t bytes) {
  return guarded([&] {
    file_of(file)->truncate(bytes);
    return OC_OK;
  });
}

int oc_eaf_preallocate(int file, int64_t bytes) {
  return guarded([&] {
    file_of(file)->preallocate(bytes);
    return OC_OK;
  });
}

int oc_eaf_eof(int file, int64_t offset, int* at_end) {
  return guarded([&] {
    if (!at_end) invalid("ask for the end", "at_end is NULL");
    *at_end = file_of(file)->eof(offset);
    return OC_OK;
  });
}

int oc_eaf_stat(const char* scratch, int64_t* free_bytes, char* type, size_t type_size) {
  return guarded([&] {
    const auto& directory = scratch && *scratch ? outcore::device::checked_scratch(scratch, false)
                                                : outcore::device::default_scratch();
    const auto system = outcore::device::file_system(directory);
    report(system, free_bytes, type, type_size);
    return OC_OK;
  });
}

}  // extern "C"
