#include "crash/recorder.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

namespace crash {
namespace {

using Kind = Operation::Kind;

/// The function that is called without a recorder.
template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
#define REAL(name) real<decltype(&::name)>(#name)

/// Where a name lies: a directory that is recorded, and the name in it.
struct Place {
  int directory = -1;
  std::string name = {};

  explicit operator bool() const noexcept { return directory >= 0; }
};

class Recorder {
 public:
  std::recursive_mutex mutex;  ///< held during the calls, so that the log has them in their order
  std::atomic<bool> active{false};

  void begin(const std::string& directory, const Disk& disk) {
    const std::lock_guard lock(mutex);
    log_.clear();
    known_.clear();
    names_.assign(1, ".");
    next_ = disk.next_node();
    know(directory, Disk::root);
    for (const auto& [path, entry] : disk.live().entries) {
      know(directory + "/" + path, entry.node);
      name(entry.node, path);
    }
    active = true;
  }

  Log end() {
    const std::lock_guard lock(mutex);
    active = false;
    return std::exchange(log_, {});
  }

  void add(Operation operation) { log_.push_back(std::move(operation)); }

  [[nodiscard]] int node(int fd) const {
    struct stat about{};
    return ::fstat(fd, &about) == 0 ? find(about) : -1;
  }
  [[nodiscard]] int node(const Place& place, int at, const char* path) const {
    struct stat about{};
    return place && ::fstatat(at, path, &about, AT_SYMLINK_NOFOLLOW) == 0 ? find(about) : -1;
  }

  [[nodiscard]] Place place(int at, const char* path) const {
    std::string text(path);
    while (text.size() > 1 && text.ends_with('/')) text.pop_back();
    const std::size_t slash = text.rfind('/');
    const std::string name = text.substr(slash + 1);  // npos + 1 is 0
    const std::string above = slash == std::string::npos ? "." : slash == 0 ? "/" : text.substr(0, slash);
    struct stat about{};
    if (::fstatat(at, above.c_str(), &about, 0) != 0) return {};
    return {find(about), name};
  }

  void made(int at, const char* path, const Place& where, bool is_directory) {
    struct stat about{};
    if (::fstatat(at, path, &about, AT_SYMLINK_NOFOLLOW) != 0) return;
    const int number = next_++;
    known_[{about.st_dev, about.st_ino}] = number;
    name(number, path_of(where));
    add({.kind = is_directory ? Kind::make_directory : Kind::make_file, .node = number});
    add({.kind = Kind::enter, .node = number, .at = where.directory, .name = where.name});
  }
  void name(int number, const std::string& text) {
    if (std::cmp_less_equal(names_.size(), number)) names_.resize(static_cast<std::size_t>(number) + 1);
    names_[static_cast<std::size_t>(number)] = text;
  }
  [[nodiscard]] std::string path_of(const Place& place) const {
    return place.directory == Disk::root ? place.name : name(place.directory) + "/" + place.name;
  }
  [[nodiscard]] const std::string& name(int number) const { return names_[static_cast<std::size_t>(number)]; }

 private:
  void know(const std::string& path, int number) {
    struct stat about{};
    if (::lstat(path.c_str(), &about) != 0) throw std::runtime_error("cannot record " + path);
    known_[{about.st_dev, about.st_ino}] = number;
  }
  [[nodiscard]] int find(const struct stat& about) const {
    const auto found = known_.find({about.st_dev, about.st_ino});
    return found == known_.end() ? -1 : found->second;
  }

  Log log_;
  std::map<std::pair<dev_t, ino_t>, int> known_;
  std::vector<std::string> names_;  ///< by number: the last path of each
  int next_ = 0;
};

Recorder& recorder() {
  static Recorder the_recorder;
  return the_recorder;
}

/// Calls `call`, and during a recording then `note` with its result.
template <class Call, class Note>
auto recorded(Call call, Note note) {
  Recorder& the_recorder = recorder();
  if (!the_recorder.active) return call();
  const std::lock_guard lock(the_recorder.mutex);
  const auto result = call();
  const int error = errno;
  if (the_recorder.active) note(the_recorder, result);
  errno = error;
  return result;
}

template <class Open>
int open_recorded(int at, const char* path, int flags, Open open) {
  Recorder& the_recorder = recorder();
  if (!the_recorder.active || (flags & (O_CREAT | O_TRUNC)) == 0 || (flags & O_TMPFILE) == O_TMPFILE)
    return open();
  const std::lock_guard lock(the_recorder.mutex);
  const Place where = the_recorder.place(at, path);
  const int before = the_recorder.node(where, at, path);
  struct stat about{};
  const bool there = ::fstatat(at, path, &about, 0) == 0;
  const int fd = open();
  const int error = errno;
  if (where && fd >= 0) {
    if (!there)
      the_recorder.made(at, path, where, false);
    else if (before >= 0 && (flags & O_TRUNC) != 0)
      the_recorder.add({.kind = Kind::size, .node = before});
  }
  errno = error;
  return fd;
}

template <class Remove>
int remove_recorded(int at, const char* path, Remove remove) {
  Recorder& the_recorder = recorder();
  if (!the_recorder.active) return remove();
  const std::lock_guard lock(the_recorder.mutex);
  const Place where = the_recorder.place(at, path);
  return recorded(remove, [&](Recorder& to, int result) {
    if (where && result == 0) to.add({.kind = Kind::leave, .at = where.directory, .name = where.name});
  });
}

template <class Rename>
int rename_recorded(int from_at, const char* from, int to_at, const char* to, Rename rename) {
  Recorder& the_recorder = recorder();
  if (!the_recorder.active) return rename();
  const std::lock_guard lock(the_recorder.mutex);
  const Place source = the_recorder.place(from_at, from), target = the_recorder.place(to_at, to);
  const int node = the_recorder.node(source, from_at, from);
  return recorded(rename, [&](Recorder& log, int result) {
    if (result != 0 || !source || !target || node < 0) return;
    log.name(node, log.path_of(target));
    log.add({.kind = Kind::rename,
             .node = node,
             .at = target.directory,
             .from_at = source.directory,
             .name = target.name,
             .from = source.name});
  });
}

template <class Make>
int make_directory_recorded(int at, const char* path, Make make) {
  Recorder& the_recorder = recorder();
  if (!the_recorder.active) return make();
  const std::lock_guard lock(the_recorder.mutex);
  const Place where = the_recorder.place(at, path);
  return recorded(make, [&](Recorder& log, int result) {
    if (where && result == 0) log.made(at, path, where, true);
  });
}

void note_write(Recorder& log, int fd, const iovec* list, int count, std::int64_t offset, ssize_t written) {
  const int node = log.node(fd);
  if (node < 0 || written <= 0) return;
  Operation made{.kind = Kind::write, .node = node, .offset = offset};
  auto left = static_cast<std::size_t>(written);
  for (int i = 0; i < count && left > 0; ++i) {
    const std::size_t part = std::min(left, list[i].iov_len);
    const auto* first = static_cast<const std::byte*>(list[i].iov_base);
    made.data.insert(made.data.end(), first, first + part);
    left -= part;
  }
  log.add(std::move(made));
}

template <class Sync>
int sync_recorded(int fd, Sync sync) {
  Recorder& the_recorder = recorder();
  if (!the_recorder.active) return sync();
  const std::lock_guard lock(the_recorder.mutex);
  const int node = the_recorder.node(fd);
  if (node < 0) return sync();
  the_recorder.add({.kind = Kind::sync, .node = node, .name = the_recorder.name(node)});
  return 0;
}

int allocate_recorded(int fd, int mode, off_t offset, off_t size, int result) {
  Recorder& the_recorder = recorder();
  const int node = the_recorder.node(fd);
  if (node < 0 || result != 0) return result;
  struct stat about{};
  if (mode & FALLOC_FL_PUNCH_HOLE)
    the_recorder.add({.kind = Kind::punch, .node = node, .offset = offset, .size = size});
  else if (!(mode & FALLOC_FL_KEEP_SIZE) && ::fstat(fd, &about) == 0)
    the_recorder.add({.kind = Kind::size, .node = node, .offset = about.st_size});
  return result;
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

void begin_recording(const std::string& directory, const Disk& disk) {
  const char* const engine = std::getenv("OUTCORE_ENGINE");
  if (!engine || std::string(engine) != "threads")
    throw std::runtime_error(
        "OUTCORE_ENGINE is not 'threads': what io_uring writes is not recorded, and its loss would be "
        "reported");
  recorder().begin(directory, disk);
}

void allow(std::uint64_t states) {
  const std::lock_guard lock(recorder().mutex);
  if (recorder().active) recorder().add({.kind = Kind::allow, .states = states});
}

Log end_recording() {
  return recorder().end();
}

}  // namespace crash

// ---- replacements of functions of the C library

using namespace crash;  // NOLINT

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_recorded(AT_FDCWD, path, flags, [&] { return REAL(open)(path, flags, mode); });
}

int openat(int at, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_recorded(at, path, flags, [&] { return REAL(openat)(at, path, flags, mode); });
}

int mkdir(const char* path, mode_t mode) noexcept {
  return make_directory_recorded(AT_FDCWD, path, [&] { return REAL(mkdir)(path, mode); });
}

int mkdirat(int at, const char* path, mode_t mode) noexcept {
  return make_directory_recorded(at, path, [&] { return REAL(mkdirat)(at, path, mode); });
}

int unlink(const char* path) noexcept {
  return remove_recorded(AT_FDCWD, path, [&] { return REAL(unlink)(path); });
}

int unlinkat(int at, const char* path, int flags) noexcept {
  return remove_recorded(at, path, [&] { return REAL(unlinkat)(at, path, flags); });
}

int rmdir(const char* path) noexcept {
  return remove_recorded(AT_FDCWD, path, [&] { return REAL(rmdir)(path); });
}

int remove(const char* path) noexcept {
  return remove_recorded(AT_FDCWD, path, [&] { return REAL(remove)(path); });
}

int rename(const char* from, const char* to) noexcept {
  return rename_recorded(AT_FDCWD, from, AT_FDCWD, to, [&] { return REAL(rename)(from, to); });
}

int renameat(int from_at, const char* from, int to_at, const char* to) noexcept {
  return rename_recorded(from_at, from, to_at, to, [&] { return REAL(renameat)(from_at, from, to_at, to); });
}

ssize_t write(int fd, const void* data, size_t size) {
  return recorded([&] { return REAL(write)(fd, data, size); },
                  [&](Recorder& log, ssize_t written) {
                    if (log.node(fd) < 0) return;
                    const iovec entry{const_cast<void*>(data), size};
                    note_write(log, fd, &entry, 1, ::lseek(fd, 0, SEEK_CUR) - written, written);
                  });
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  return recorded([&] { return REAL(pwrite)(fd, data, size, offset); },
                  [&](Recorder& log, ssize_t written) {
                    const iovec entry{const_cast<void*>(data), size};
                    note_write(log, fd, &entry, 1, offset, written);
                  });
}

ssize_t pwritev(int fd, const iovec* list, int count, off_t offset) {
  return recorded([&] { return REAL(pwritev)(fd, list, count, offset); },
                  [&](Recorder& log, ssize_t written) { note_write(log, fd, list, count, offset, written); });
}

int ftruncate(int fd, off_t length) noexcept {
  return recorded([&] { return REAL(ftruncate)(fd, length); },
                  [&](Recorder& log, int result) {
                    if (const int node = log.node(fd); node >= 0 && result == 0)
                      log.add({.kind = Kind::size, .node = node, .offset = length});
                  });
}

int fallocate(int fd, int mode, off_t offset, off_t size) {
  return recorded([&] { return REAL(fallocate)(fd, mode, offset, size); },
                  [&](Recorder&, int result) { allocate_recorded(fd, mode, offset, size, result); });
}

int posix_fallocate(int fd, off_t offset, off_t size) {
  return recorded([&] { return REAL(posix_fallocate)(fd, offset, size); },
                  [&](Recorder&, int result) { allocate_recorded(fd, 0, offset, size, result); });
}

int fsync(int fd) {
  return sync_recorded(fd, [&] { return REAL(fsync)(fd); });
}

int fdatasync(int fd) {
  return sync_recorded(fd, [&] { return REAL(fdatasync)(fd); });
}

// The same functions by the names that 32-bit programs use.
int open64(const char*, int, ...) __attribute__((alias("open")));
int openat64(int, const char*, int, ...) __attribute__((alias("openat")));
ssize_t pwrite64(int, const void*, size_t, off_t) __attribute__((alias("pwrite")));
ssize_t pwritev64(int, const iovec*, int, off_t) __attribute__((alias("pwritev")));
int ftruncate64(int, off_t) noexcept __attribute__((alias("ftruncate")));
int fallocate64(int, int, off_t, off_t) __attribute__((alias("fallocate")));
int posix_fallocate64(int, off_t, off_t) __attribute__((alias("posix_fallocate")));
}
