// SF: shared files by their classic names, for C and Fortran. Codes are 0 and the values of errno.

#include "outcore/compat/sf.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "compat/processes.hpp"
#include "compat/shared.hpp"

namespace outcore::compat {
namespace {

constexpr int done = -1;  // value of a request that was waited for

struct File {
  int handle = 0;  // of the C interface
  std::string name;
  Members members;  ///< the processes that have made it
  bool open = true, writable = true;
};

struct Pending {
  std::shared_ptr<File> file;  ///< may be destroyed meanwhile
  std::int64_t at = 0, bytes = 0, request = 0;
  bool reads = false;
};

auto& files = *new Numbered<std::shared_ptr<File>>;
auto& requests = *new Numbered<Pending>;

int no_file(int handle) {
  return failed(EBADF, "SF: there is no file " + std::to_string(handle));
}

/// The text of a failure of the C interface: the attempted call and the reason, without the component files
/// of a shared file, which mean nothing to a program. The reason comes early, because SF_Errmsg has room for
/// 79 characters.
int refused(int code, const std::string& attempted, const std::string& path) {
  const auto [directory, name] = split_path(path);
  const std::string text = oc_last_error();
  const auto reason = text.find(std::strerror(code));
  return failed(code, "SF: " + attempted + " " + name + ": " +
                          (reason == std::string::npos ? text : text.substr(reason)) + " in " + directory);
}

int refused(int code, const Pending& pending) {
  return refused(code,
                 std::string(pending.reads ? "read" : "write") + " of " + std::to_string(pending.bytes) +
                     " bytes at offset " + std::to_string(pending.at) + " of",
                 pending.file->name);
}

/// A size or hint; a negative one means "don't know".
std::int64_t hint_of(double bytes) {
  return bytes > 0 ? static_cast<std::int64_t>(bytes) : 0;
}

bool whole(double number) {
  return number >= 0 && number <= 9e15 && std::floor(number) == number;
}

int create(const std::string& given, double hard_limit, double soft_limit, double request, int* handle) {
  const std::string path = of_first(given);
  const auto [directory, name] = split_path(path);
  int world = 0;
  if (const int code = world_of_processes(directory, &world)) return refused(code, "create", path);
  oc_sf_options options{};
  options.size = sizeof options;
  options.hard_limit_bytes = hint_of(hard_limit);
  options.soft_limit_bytes = hint_of(soft_limit);
  options.typical_request_bytes = hint_of(request);
  int made = 0;
  if (const int code = oc_sf_create(world, name.c_str(), &options, &made))
    return refused(code, "create", path);
  *handle = files.add(std::make_shared<File>(File{made, path, calling_processes()}));
  return OC_OK;
}

int begin(int handle, double offset, double bytes, char* buffer, int* id, bool reads) {
  const auto file = files.get(handle).value_or(nullptr);
  if (!file) return no_file(handle);
  if (!file->open) return failed(EBADF, "SF: " + file->name + " is closed: sf_open opens it again");
  if (!reads && !file->writable)
    return failed(EROFS, "SF: " + file->name + " is to be read only, since sf_rwtor");
  if (!whole(offset) || !whole(bytes))
    return failed(EINVAL, "SF: offset " + std::to_string(offset) + " or size " + std::to_string(bytes) +
                              " of " + file->name + " is no whole number from 0 on");
  const auto at = static_cast<std::int64_t>(offset), size = static_cast<std::int64_t>(bytes);
  Pending pending{file, at, size, 0, reads};
  const int number = requests.add(pending);  // before it begins, so that it can be waited for
  const int code = reads ? oc_sf_read_async(file->handle, at, buffer, size, &pending.request)
                         : oc_sf_write_async(file->handle, at, buffer, size, &pending.request);
  if (code) {
    requests.take(number);
    return refused(code, pending);
  }
  requests.put(*id = number, std::move(pending));
  return OC_OK;
}

/// Runs a call on a file; `attempted` names it in errors.
template <class Body>
int on(int handle, const char* attempted, Body body) {
  const auto file = files.get(handle).value_or(nullptr);
  if (!file) return no_file(handle);
  const int code = body(*file);
  return code ? refused(code, attempted, file->name) : OC_OK;
}

}  // namespace
}  // namespace outcore::compat

using namespace outcore::compat;

OUTCORE_CLASSIC int SF_Create(char* fname, SFsize_t hard_limit, SFsize_t soft_limit, SFsize_t req_size,
                              int* handle) {
  return guarded([&] { return create(text_of(fname), hard_limit, soft_limit, req_size, handle); });
}

OUTCORE_CLASSIC int SF_Create_suffix(char* fname, SFsize_t hard_limit, SFsize_t soft_limit, SFsize_t req_size,
                                     int* handle, int suffix) {
  return guarded([&] {
    return create(text_of(fname) + "." + std::to_string(suffix), hard_limit, soft_limit, req_size, handle);
  });
}

OUTCORE_CLASSIC int SF_Destroy(int handle) {
  return guarded([&]() -> int {
    const auto file = files.get(handle).value_or(nullptr);
    const int own = file ? check_callers(calling_processes(), file->members, "SF: destroy " + file->name)
                         : no_file(handle);
    if (const int code =
            agreed(own, "SF: destroy " + std::to_string(handle) + ": another process has no such file"))
      return code;
    files.take(handle);
    const int code = oc_sf_destroy(file->handle);
    return code ? refused(code, "destroy", file->name) : OC_OK;
  });
}

OUTCORE_CLASSIC int SF_Rwtor(int handle) {
  return guarded([&]() -> int {
    return on(handle, "make read only", [](File& file) {
      file.writable = false;
      return oc_sf_sync(file.handle);
    });
  });
}

OUTCORE_CLASSIC int SF_Open(int handle) {
  return guarded([&]() -> int {
    return on(handle, "open", [](File& file) {
      file.open = true;
      return OC_OK;
    });
  });
}

/// Closes the file; its bytes stay for SF_Open.
OUTCORE_CLASSIC int SF_Close(int handle) {
  return guarded([&]() -> int {
    return on(handle, "close", [](File& file) {
      file.open = false;
      return oc_sf_sync(file.handle);
    });
  });
}

OUTCORE_CLASSIC int SF_Fsync(int handle) {
  return guarded([&]() -> int {
    return on(handle, "write all of", [](File& file) { return oc_sf_sync(file.handle); });
  });
}

OUTCORE_CLASSIC int SF_Write(int handle, SFsize_t offset, SFsize_t bytes, char* buffer, int* req_id) {
  return guarded([&] { return begin(handle, offset, bytes, buffer, req_id, false); });
}

OUTCORE_CLASSIC int SF_Read(int handle, SFsize_t offset, SFsize_t bytes, char* buffer, int* req_id) {
  return guarded([&] { return begin(handle, offset, bytes, buffer, req_id, true); });
}

OUTCORE_CLASSIC int SF_Wait(int* req_id) {
  return guarded([&]() -> int {
    if (*req_id == done) return OC_OK;
    const auto request = requests.take(*req_id);
    if (!request) return failed(EINVAL, "SF: there is no request " + std::to_string(*req_id));
    *req_id = done;
    const int code = oc_wait(request->request, nullptr);
    return code ? refused(code, *request) : OC_OK;
  });
}

OUTCORE_CLASSIC int SF_Waitall(int* list, int num) {
  return guarded([&] {
    int first = OC_OK;
    std::string text;
    for (int i = 0; i < num; ++i) {
      const int code = SF_Wait(&list[i]);
      if (code == OC_OK || first != OC_OK) continue;
      first = code;
      text = error_text(code);
    }
    return first ? failed(first, text) : OC_OK;
  });
}

OUTCORE_CLASSIC void SF_Errmsg(int code, char* msg) {
  guarded([&] {
    hand_out_c(error_text(code), msg, 80);
    return OC_OK;
  });
}

// ---- Fortran ----

OUTCORE_CLASSIC Integer sf_create_(const char* fname, const double* hard_limit, const double* soft_limit,
                                   const double* req_size, Integer* handle, std::size_t length) {
  return guarded([&]() -> Integer {
    int made = -1;
    const int code = create(text_of(fname, length), *hard_limit, *soft_limit, *req_size, &made);
    *handle = made;
    return code;
  });
}

OUTCORE_CLASSIC Integer sf_create_suffix_(const char* fname, const double* hard_limit,
                                          const double* soft_limit, const double* req_size, Integer* handle,
                                          const Integer* suffix, std::size_t length) {
  return guarded([&]() -> Integer {
    int made = -1;
    std::string name = text_of(fname, length);
    const int code =
        SF_Create_suffix(name.data(), *hard_limit, *soft_limit, *req_size, &made, static_cast<int>(*suffix));
    *handle = made;
    return code;
  });
}

OUTCORE_CLASSIC Integer sf_destroy_(const Integer* handle) {
  return SF_Destroy(static_cast<int>(*handle));
}
OUTCORE_CLASSIC Integer sf_rwtor_(const Integer* handle) {
  return SF_Rwtor(static_cast<int>(*handle));
}
OUTCORE_CLASSIC Integer sf_open_(const Integer* handle) {
  return SF_Open(static_cast<int>(*handle));
}
OUTCORE_CLASSIC Integer sf_close_(const Integer* handle) {
  return SF_Close(static_cast<int>(*handle));
}
OUTCORE_CLASSIC Integer sf_fsync_(const Integer* handle) {
  return SF_Fsync(static_cast<int>(*handle));
}

OUTCORE_CLASSIC Integer sf_write_(const Integer* handle, const double* offset, const double* bytes,
                                  char* buffer, Integer* req_id) {
  return guarded([&]() -> Integer {
    int id = done;
    const int code = begin(static_cast<int>(*handle), *offset, *bytes, buffer, &id, false);
    *req_id = id;
    return code;
  });
}

OUTCORE_CLASSIC Integer sf_read_(const Integer* handle, const double* offset, const double* bytes,
                                 char* buffer, Integer* req_id) {
  return guarded([&]() -> Integer {
    int id = done;
    const int code = begin(static_cast<int>(*handle), *offset, *bytes, buffer, &id, true);
    *req_id = id;
    return code;
  });
}

OUTCORE_CLASSIC Integer sf_wait_(Integer* req_id) {
  int id = static_cast<int>(*req_id);
  const int code = SF_Wait(&id);
  *req_id = id;
  return code;
}

OUTCORE_CLASSIC Integer sf_waitall_(Integer* list, const Integer* num) {
  return guarded([&]() -> Integer {
    int first = OC_OK;
    std::string text;
    for (Integer i = 0; i < *num; ++i) {
      const auto code = static_cast<int>(sf_wait_(&list[i]));
      if (code == OC_OK || first != OC_OK) continue;
      first = code;
      text = error_text(code);
    }
    return first ? failed(first, text) : OC_OK;
  });
}

OUTCORE_CLASSIC void sf_errmsg_(const Integer* code, char* msg, std::size_t length) {
  guarded([&] {
    hand_out(error_text(static_cast<int>(*code)), msg, length);
    return OC_OK;
  });
}
