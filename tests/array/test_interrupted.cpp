// System calls that signals interrupt. This program replaces some calls of the C library: every second of
// these calls does nothing and fails with EINTR.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <string>
#include <vector>

#include "array/arrays.hpp"
#include "device/file.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/shared_file.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using outcore::test::in_worlds;
using outcore::test::options_in;

namespace {

std::atomic<bool> on{false};

/// One of the calls: how often it was made, and the function of the C library.
struct Interrupted {
  std::atomic<int> made{0};
  bool fails() {
    if (!on || made++ % 2 != 0) return false;
    errno = EINTR;
    return true;
  }
};

Interrupted openat_calls, fsync_calls, fdatasync_calls, ftruncate_calls, posix_fallocate_calls,
    fallocate_calls, flock_calls, statfs_calls;

template <class Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int openat(int at, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return openat_calls.fails() ? -1 : next(&openat, "openat")(at, path, flags, mode);
}
extern "C" int fsync(int fd) {
  return fsync_calls.fails() ? -1 : next(&fsync, "fsync")(fd);
}
extern "C" int fdatasync(int fd) {
  return fdatasync_calls.fails() ? -1 : next(&fdatasync, "fdatasync")(fd);
}
extern "C" int ftruncate(int fd, off_t size) noexcept {
  return ftruncate_calls.fails() ? -1 : next(&ftruncate, "ftruncate")(fd, size);
}
extern "C" int posix_fallocate(int fd, off_t offset, off_t size) {
  return posix_fallocate_calls.fails() ? EINTR : next(&posix_fallocate, "posix_fallocate")(fd, offset, size);
}
extern "C" int fallocate(int fd, int mode, off_t offset, off_t size) {
  return fallocate_calls.fails() ? -1 : next(&fallocate, "fallocate")(fd, mode, offset, size);
}
extern "C" int flock(int fd, int operation) noexcept {
  return flock_calls.fails() ? -1 : next(&flock, "flock")(fd, operation);
}
extern "C" int statfs(const char* path, struct statfs* found) noexcept {
  return statfs_calls.fails() ? -1 : next(&statfs, "statfs")(path, found);
}

TEST("calls that a signal interrupts are repeated") {
  const TemporaryDirectory directory;
  const std::string path = directory / "array";
  const Box all = Box::whole({40, 40});
  on = true;
  in_worlds(2, options_in(directory), [&](World& world) {
    DiskArray disk(world, {40, 40}, ElementType::float64, {.path = path, .chunk = {7, 9}});
    GlobalArray array(world, {40, 40}, ElementType::float64);
    test::fill(array, 3);
    disk.write_all_async(array, {.box = all}, all);
    disk.close();
    DiskArray again = DiskArray::open(world, path);
    test::Model back({40, 40});
    again.read_all_async(back.memory(all), all).wait();
    check::equal(back.data[back.at({20, 20})], test::value_at({20, 20}, 3));
    again.close();
    file::SharedFile shared(world, "file");
    std::vector<std::byte> bytes(100'000, std::byte{7});
    shared.write(bytes, 100'000 * world.rank());
    shared.sync();
    shared.close();
  });
  {
    device::File file(directory / "file", {.create = true});
    file.preallocate(1 << 20);
    check::is_true(file.reserve(1 << 20, 1 << 20) && file.punch(0, 1 << 16));
    file.truncate(1 << 19);
    file.flush();
    check::equal(device::file_system(directory).free_bytes > 0, true);
  }
  on = false;
  for (const Interrupted* each : {&openat_calls, &fsync_calls, &ftruncate_calls, &posix_fallocate_calls,
                                  &fallocate_calls, &flock_calls, &statfs_calls})
    check::is_true(each->made > 0);
}

TEST_MAIN
