// The C interface: handles, return codes and the text of the last error around ExclusiveFile.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>

#include "outcore/device/file.hpp"
#include "outcore/error.hpp"
#include "outcore/file/exclusive_file.hpp"
#include "outcore/file/scratch.hpp"
#include "outcore/outcore.h"

namespace {

using outcore::Error;
using outcore::device::Request;
using outcore::file::ExclusiveFile;

struct Outstanding {
  Request request;
  std::int64_t size_bytes = 0;
  std::shared_ptr<ExclusiveFile> file;
};

/// Things known to C by numbers, which are never used twice.
template <class Number, class Thing>
class Table {
 public:
  Number add(Thing thing) {
    const std::lock_guard guard(mutex_);
    if (last_ == std::numeric_limits<Number>::max()) throw Error(EMFILE, {.attempted = "number a handle"});
    things_.emplace(++last_, std::move(thing));
    return last_;
  }
  Thing get(Number number, int errno_value, const char* what) {
    const std::lock_guard guard(mutex_);
    return find(number, errno_value, what)->second;
  }
  Thing take(Number number, int errno_value, const char* what) {
    const std::lock_guard guard(mutex_);
    const auto found = find(number, errno_value, what);
    Thing thing = std::move(found->second);
    things_.erase(found);
    return thing;
  }

 private:
  auto find(Number number, int errno_value, const char* what) {
    const auto found = things_.find(number);
    if (found != things_.end()) return found;
    const char* why = number > 0 && number <= last_ ? "it has ended" : "no such handle was given out";
    throw Error(errno_value,
                {.attempted = std::string("use ") + what + " " + std::to_string(number), .detail = why});
  }

  std::mutex mutex_;
  std::unordered_map<Number, Thing> things_;
  Number last_ = 0;
};

// Leaked: files left open are closed at exit by the file layer, which needs nothing of this.
auto& files = *new Table<int, std::shared_ptr<ExclusiveFile>>;
auto& requests = *new Table<std::int64_t, Outstanding>;

std::shared_ptr<ExclusiveFile> file_of(int file) {
  return files.get(file, EBADF, "file");
}

thread_local int last_code = OC_OK;
thread_local std::string last_text;

int failed(int code, const char* text) noexcept {
  last_code = code;
  try {
    last_text = text;
  } catch (const std::bad_alloc&) {
    last_text.clear();  // oc_eaf_strerror falls back to the system's words
  }
  return code;
}

/// Runs a call and turns whatever it throws into a code and a text. The body returns a code.
template <class Body>
int guarded(Body body) noexcept {
  try {
    return body();
  } catch (const Error& error) {
    return failed(error.errno_value(), error.what());
  } catch (const std::bad_alloc&) {
    return failed(ENOMEM, "out of memory");
  } catch (const std::exception& error) {
    return failed(EIO, error.what());
  }
}

[[noreturn]] void invalid(const char* attempted, const char* why) {
  throw Error(EINVAL, {.attempted = attempted, .detail = why});
}

std::size_t size_of(const char* attempted, const void* buffer, std::int64_t bytes) {
  if (bytes < 0)
    throw Error(EINVAL, {.attempted = attempted, .detail = "negative size: " + std::to_string(bytes)});
  if (!buffer && bytes > 0) invalid(attempted, "the buffer is NULL");
  return static_cast<std::size_t>(bytes);
}

std::span<std::byte> memory(void* buffer, std::int64_t bytes) {
  return {static_cast<std::byte*>(buffer), size_of("read", buffer, bytes)};
}
std::span<const std::byte> memory(const void* buffer, std::int64_t bytes) {
  return {static_cast<const std::byte*>(buffer), size_of("write", buffer, bytes)};
}

/// Hands out the bytes moved; without a place for them, fewer than asked for are an error.
int report_moved(const ExclusiveFile& file, std::int64_t got, std::int64_t wanted, std::int64_t* moved) {
  if (moved) *moved = got;
  if (moved || got == wanted) return OC_OK;
  const auto text = "read of " + std::to_string(wanted) + " bytes of " + file.path() +
                    ": end of file after " + std::to_string(got) + " bytes";
  return failed(OC_END_OF_FILE, text.c_str());
}

outcore::file::ExclusiveFileOptions translate(const oc_eaf_options& options) {
  outcore::file::ExclusiveFileOptions result;
  if (options.scratch) result.scratch = options.scratch;
  result.keep = options.keep != 0;
  result.expected_bytes = options.expected_bytes;
  switch (options.cache) {
    case OC_CACHE_AUTOMATIC:
      result.cache = outcore::device::Cache::automatic;
      break;
    case OC_CACHE_BUFFERED:
      result.cache = outcore::device::Cache::buffered;
      break;
    case OC_CACHE_DIRECT:
      result.cache = outcore::device::Cache::direct;
      break;
    default:
      invalid("open", "cache is none of OC_CACHE_*");
  }
  return result;
}

int keep_request(std::shared_ptr<ExclusiveFile> file, Request request, std::int64_t bytes,
                 std::int64_t* number) {
  *number = requests.add({std::move(request), bytes, std::move(file)});
  return OC_OK;
}

}  // namespace

extern "C" {

int oc_eaf_open(const char* name, const oc_eaf_options* options, int* file) {
  return guarded([&] {
    if (!name || !file) invalid("open", "name or file is NULL");
    *file =
        files.add(std::make_shared<ExclusiveFile>(name, translate(options ? *options : oc_eaf_options{})));
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
    const auto open = file_of(file);
    return report_moved(*open, open->read(memory(buffer, bytes), offset), bytes, moved);
  });
}

int oc_eaf_awrite(int file, int64_t offset, const void* buffer, int64_t bytes, int64_t* request) {
  return guarded([&] {
    if (!request) invalid("write", "request is NULL");
    auto open = file_of(file);
    auto begun = open->async_write(memory(buffer, bytes), offset);
    return keep_request(std::move(open), std::move(begun), bytes, request);
  });
}

int oc_eaf_aread(int file, int64_t offset, void* buffer, int64_t bytes, int64_t* request) {
  return guarded([&] {
    if (!request) invalid("read", "request is NULL");
    auto open = file_of(file);
    auto begun = open->async_read(memory(buffer, bytes), offset);
    return keep_request(std::move(open), std::move(begun), bytes, request);
  });
}

int oc_eaf_wait(int64_t request, int64_t* moved) {
  return guarded([&] {
    auto outstanding = requests.take(request, EINVAL, "request");
    return report_moved(*outstanding.file, outstanding.request.wait(), outstanding.size_bytes, moved);
  });
}

int oc_eaf_probe(int64_t request, int* done) {
  return guarded([&] {
    if (!done) invalid("probe", "done is NULL");
    *done = requests.get(request, EINVAL, "request").request.done();
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
    files.take(file, EBADF, "file")->erase();
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
    const auto& directory =
        scratch && *scratch ? outcore::file::checked_scratch(scratch) : outcore::file::default_scratch();
    const auto system = outcore::device::file_system(directory);
    if (free_bytes) *free_bytes = system.free_bytes;
    if (type && type_size > 0) {
      const auto size = std::min(type_size - 1, system.type.size());
      std::memcpy(type, system.type.data(), size);
      type[size] = 0;
    }
    return OC_OK;
  });
}

const char* oc_eaf_strerror(int code) {
  if (code == OC_OK) return "success";
  if (code == last_code && !last_text.empty()) return last_text.c_str();
  return code == OC_END_OF_FILE ? "end of file" : std::strerror(code);
}

}  // extern "C"
