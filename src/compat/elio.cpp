// ELIO: elementary I/O by its classic names. Files may be shared with other processes, and by their
// descriptor with the program, so no data is kept in memory: each call is a system call, which a thread makes
// for nonblocking calls.

#include "outcore/compat/elio.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>

#include "compat/codes.hpp"
#include "compat/shared.hpp"

namespace outcore::compat {
namespace {

using namespace elio;  // its codes

struct Answer {
  std::int64_t moved = 0;
  int error = 0;  ///< of the system
};

struct Pending {
  std::shared_ptr<std::future<Answer>> answer;
  std::int64_t wanted = 0;
  std::string attempted;
  bool reads = false;
};

auto& requests = *new Numbered<Pending>;

int refused(int code, const std::string& attempted, int error) {
  return failed(code, "ELIO: " + attempted + ": " + std::strerror(error));
}

int ended(const std::string& attempted, std::int64_t moved) {
  return failed(end_of_file,
                "ELIO: " + attempted + ": end of file after " + std::to_string(moved) + " bytes");
}

std::string attempt(const char* verb, const fd_struct& file, double offset, std::int64_t bytes) {
  return std::string(verb) + " " + std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
         " of " + file.name;
}

/// Moves all bytes, except those of a read beyond the end.
template <class Call>
Answer transfer(Call call, std::int64_t offset, std::int64_t bytes) {
  Answer answer;
  while (answer.moved < bytes) {
    const auto moved =
        call(answer.moved, static_cast<std::size_t>(bytes - answer.moved), offset + answer.moved);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) answer.error = errno;
    if (moved <= 0) break;
    answer.moved += moved;
  }
  return answer;
}

Answer read(int descriptor, std::int64_t offset, void* memory, std::int64_t bytes) {
  return transfer(
      [&](std::int64_t done, std::size_t left, std::int64_t at) {
        return pread(descriptor, static_cast<char*>(memory) + done, left, at);
      },
      offset, bytes);
}

Answer write(int descriptor, std::int64_t offset, const void* memory, std::int64_t bytes) {
  return transfer(
      [&](std::int64_t done, std::size_t left, std::int64_t at) {
        return pwrite(descriptor, static_cast<const char*>(memory) + done, left, at);
      },
      offset, bytes);
}

/// Checks the arguments of a transfer: 0, or the code of the failure.
int check(Fd_t fd, double offset, std::int64_t bytes, bool reads) {
  if (!fd) return refused(reads ? read_failed : write_failed, "use a file", EBADF);
  if (!(std::floor(offset) == offset) || offset < 0 || offset > 9e15 || bytes < 0)
    return refused(no_number, attempt(reads ? "read" : "write", *fd, offset, bytes), EINVAL);
  if (fd->type == (reads ? ELIO_W : ELIO_R))
    return refused(wrong_mode, attempt(reads ? "read" : "write", *fd, offset, bytes), EACCES);
  return ELIO_OK;
}

template <class Work>
int begin(Fd_t fd, double offset, std::int64_t bytes, io_request_t* id, bool reads, Work work) {
  if (const int code = check(fd, offset, bytes, reads)) return code;
  const std::string attempted = attempt(reads ? "read" : "write", *fd, offset, bytes);
  // Its own descriptor, so that the file may be closed meanwhile.
  const std::shared_ptr<int> descriptor(new int(-1), [](const int* its) {
    if (*its >= 0) close(*its);
    delete its;
  });
  *descriptor = fcntl(fd->fd, F_DUPFD_CLOEXEC, 0);
  if (*descriptor < 0) return refused(reads ? aread_failed : awrite_failed, attempted, errno);
  try {
    auto answer = std::make_shared<std::future<Answer>>(
        std::async(std::launch::async, [descriptor, work] { return work(*descriptor); }));
    *id = requests.add({std::move(answer), bytes, attempted, reads});
    return ELIO_OK;
  } catch (const std::system_error& error) {  // no thread
    return refused(reads ? aread_failed : awrite_failed, attempted, error.code().value());
  }
}

int open_file(const std::string& path, int type, int mode, Fd_t* opened) {
  int flags = 0;
  switch (type) {
    case ELIO_R:
      flags = O_RDONLY;
      break;
    case ELIO_W:
      flags = O_WRONLY | O_CREAT | O_TRUNC;
      break;
    case ELIO_RW:
      flags = O_RDWR | O_CREAT;
      break;
    default:
      return refused(wrong_mode, "open " + path, EINVAL);
  }
  auto file = std::make_unique<fd_struct>(fd_struct{-1, ELIO_UFS, mode, type, nullptr, 0, nullptr});
  std::unique_ptr<char, void (*)(void*)> name(strdup(path.c_str()), std::free);
  if (!name) return refused(open_failed, "open " + path, ENOMEM);
  file->fd = open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (file->fd < 0) return refused(open_failed, "open " + path, errno);
  file->name = name.release();
  *opened = file.release();
  return ELIO_OK;
}

}  // namespace
}  // namespace outcore::compat

using namespace outcore::compat;

OUTCORE_CLASSIC Fd_t elio_open(const char* fname, int type, int mode) {
  Fd_t opened = nullptr;
  if (const int code = guarded(open_failed, [&] { return open_file(text_of(fname), type, mode, &opened); }))
    opening_failed(code);
  return opened;
}

OUTCORE_CLASSIC int elio_close(Fd_t fd) {
  return guarded(close_failed, [&]() -> int {
    if (!fd) return refused(close_failed, "close a file", EBADF);
    const std::unique_ptr<fd_struct> file(fd);
    const std::string name = file->name;
    std::free(file->name);
    return close(file->fd) == 0 ? ELIO_OK : refused(close_failed, "close " + name, errno);
  });
}

OUTCORE_CLASSIC int elio_delete(const char* filename) {
  return guarded(delete_failed, [&] {
    if (unlink(filename) == 0 || errno == ENOENT || errno == ENOTDIR) return ELIO_OK;
    return refused(delete_failed, "delete " + text_of(filename), errno);
  });
}

OUTCORE_CLASSIC Size_t elio_read(Fd_t fd, Off_t offset, void* buf, Size_t bytes) {
  return guarded(read_failed, [&]() -> Size_t {
    if (const int code = check(fd, offset, bytes, true)) return code;
    const Answer answer = read(fd->fd, static_cast<std::int64_t>(offset), buf, bytes);
    const std::string attempted = attempt("read", *fd, offset, bytes);
    if (answer.error) return refused(read_failed, attempted, answer.error);
    return answer.moved < bytes ? ended(attempted, answer.moved) : answer.moved;
  });
}

OUTCORE_CLASSIC Size_t elio_write(Fd_t fd, Off_t offset, const void* buf, Size_t bytes) {
  return guarded(write_failed, [&]() -> Size_t {
    if (const int code = check(fd, offset, bytes, false)) return code;
    const Answer answer = write(fd->fd, static_cast<std::int64_t>(offset), buf, bytes);
    return answer.error ? refused(write_failed, attempt("write", *fd, offset, bytes), answer.error)
                        : answer.moved;
  });
}

OUTCORE_CLASSIC int elio_aread(Fd_t fd, Off_t offset, void* buf, Size_t bytes, io_request_t* req_id) {
  return guarded(aread_failed, [&]() -> int {
    return begin(fd, offset, bytes, req_id, true, [=](int descriptor) {
      return read(descriptor, static_cast<std::int64_t>(offset), buf, bytes);
    });
  });
}

OUTCORE_CLASSIC int elio_awrite(Fd_t fd, Off_t offset, const void* buf, Size_t bytes, io_request_t* req_id) {
  return guarded(awrite_failed, [&]() -> int {
    return begin(fd, offset, bytes, req_id, false, [=](int descriptor) {
      return write(descriptor, static_cast<std::int64_t>(offset), buf, bytes);
    });
  });
}

OUTCORE_CLASSIC int elio_wait(io_request_t* id) {
  return guarded(no_request, [&]() -> int {
    if (*id == ELIO_DONE) return ELIO_OK;
    const auto found = requests.take(static_cast<int>(*id));
    if (!found) return refused(no_request, "wait for request " + std::to_string(*id), EINVAL);
    *id = ELIO_DONE;
    const Answer answer = found->answer->get();
    if (answer.error)
      return refused(found->reads ? aread_failed : awrite_failed, found->attempted, answer.error);
    if (answer.moved < found->wanted) return ended(found->attempted, answer.moved);
    return ELIO_OK;
  });
}

OUTCORE_CLASSIC int elio_probe(io_request_t* id, int* status) {
  return guarded(no_request, [&]() -> int {
    *status = ELIO_DONE;
    if (*id == ELIO_DONE) return ELIO_OK;
    const auto found = requests.get(static_cast<int>(*id));
    if (!found) return refused(no_request, "probe request " + std::to_string(*id), EINVAL);
    if (found->answer->wait_for(std::chrono::seconds(0)) != std::future_status::ready) *status = ELIO_PENDING;
    return ELIO_OK;
  });
}

OUTCORE_CLASSIC int elio_length(Fd_t fd, Off_t* length) {
  return guarded(stat_failed, [&]() -> int {
    struct stat found{};
    if (!fd || fstat(fd->fd, &found) != 0)
      return refused(stat_failed, "ask for a length", fd ? errno : EBADF);
    *length = static_cast<double>(found.st_size);
    return ELIO_OK;
  });
}

OUTCORE_CLASSIC int elio_truncate(Fd_t fd, Off_t length) {
  return guarded(truncate_failed, [&]() -> int {
    if (const int code = check(fd, length, 0, false)) return code;
    if (ftruncate(fd->fd, static_cast<std::int64_t>(length)) == 0) return ELIO_OK;
    return refused(truncate_failed, std::string("truncate ") + fd->name, errno);
  });
}

OUTCORE_CLASSIC int elio_fsync(Fd_t fd) {
  return guarded(sync_failed, [&]() -> int {
    if (fd && fsync(fd->fd) == 0) return ELIO_OK;
    return refused(sync_failed, "put a file on stable storage", fd ? errno : EBADF);
  });
}

OUTCORE_CLASSIC int elio_stat(char* fname, stat_t* statinfo) {
  return guarded(stat_failed, [&]() -> int {
    struct statvfs found{};
    if (statvfs(fname, &found) != 0)
      return refused(stat_failed, "ask for the file system of " + text_of(fname), errno);
    statinfo->fs = ELIO_UFS;
    statinfo->avail = static_cast<avail_t>(found.f_bavail) * found.f_frsize / 1024;
    return ELIO_OK;
  });
}

OUTCORE_CLASSIC int elio_dirname(const char* fname, char* statinfo, int len) {
  return guarded(name_too_long, [&]() -> int {
    const std::string directory = split_path(text_of(fname)).directory;
    if (len <= 0 || directory.size() >= static_cast<std::size_t>(len))
      return refused(name_too_long, "find the directory of " + text_of(fname), ENAMETOOLONG);
    hand_out_c(directory, statinfo, static_cast<std::size_t>(len));
    return ELIO_OK;
  });
}

OUTCORE_CLASSIC void elio_errmsg(int code, char* msg) {
  guarded([&] {
    hand_out_c(error_text(code), msg, 80);
    return OC_OK;
  });
}

// Used by the original itself, and by its test programs.
OUTCORE_CLASSIC void elio_init() {}
OUTCORE_CLASSIC void elio_errors_fatal(int /*on*/) {}
