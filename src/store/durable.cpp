#include "store/durable.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>

#include "base/thread_team.hpp"
#include "base/uninterrupted.hpp"
#include "device/descriptor.hpp"
#include "device/directory.hpp"
#include "device/worker.hpp"
#include "outcore/error.hpp"

namespace outcore::store {

namespace {

/// The directory of a file: the one that the caller holds, or the one that the path names.
class HeldDirectory {
 public:
  HeldDirectory(const std::string& directory, int held, const std::string& wanted = {})
      : path_(directory.empty() ? "." : directory), fd_(held) {
    if (held >= 0) return;
    opened_ = device::open_at(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!opened_) throw Error(errno, {.attempted = "open", .path = wanted.empty() ? path_ : wanted});
    fd_ = opened_.get();
  }
  static HeldDirectory of(const std::string& file, int held) {
    return {std::filesystem::path(file).parent_path().string(), held, file};
  }

  [[nodiscard]] int fd() const noexcept { return fd_; }
  void sync() const {
    // File systems that refuse it do not need it.
    if (uninterrupted([&] { return ::fsync(fd_); }) != 0 && errno != EINVAL && errno != EROFS)
      throw Error(errno, {.attempted = "flush", .path = path_});
  }

 private:
  std::string path_;
  device::Descriptor opened_;
  int fd_;
};

}  // namespace

void sync_directory(const std::string& path, int directory) {
  HeldDirectory(path, directory).sync();
}

void rename_durably(const std::string& from, const std::string& to, bool* renamed, int directory) {
  const HeldDirectory held = HeldDirectory::of(to, directory);  // before: it may fail
  const std::string old_name = device::last_name(from), new_name = device::last_name(to);
  if (::renameat(held.fd(), old_name.c_str(), held.fd(), new_name.c_str()) != 0)
    throw Error(errno, {.attempted = "rename to " + to, .path = from});
  if (renamed) *renamed = true;
  held.sync();
}

void write_durably(const std::string& path, std::span<const std::byte> bytes, device::Engine* engine,
                   bool* replaced, int directory) {
  const std::string beside = path + ".new";
  const HeldDirectory held = HeldDirectory::of(path, directory);
  device::File file = write_unsynced(beside, bytes, engine, held.fd());
  try {
    file.flush();
    file.close();
    rename_durably(beside, path, replaced, held.fd());
  } catch (...) {
    ::unlinkat(held.fd(), device::last_name(beside).c_str(), 0);
    throw;
  }
}

device::File write_unsynced(const std::string& path, std::span<const std::byte> bytes, device::Engine* engine,
                            int directory) {
  const HeldDirectory held = HeldDirectory::of(path, directory);
  const std::string name = device::last_name(path);
  if (::unlinkat(held.fd(), name.c_str(), 0) != 0 && errno != ENOENT)
    throw Error(errno, {.attempted = "replace", .path = path});
  device::File file(path, {.exclusive = true,
                           .page_cache = device::PageCache::buffered,
                           .expected_bytes = static_cast<std::int64_t>(bytes.size()),
                           .engine = engine,
                           .directory = held.fd()});
  try {
    file.write(bytes, 0);
  } catch (...) {
    ::unlinkat(held.fd(), name.c_str(), 0);
    throw;
  }
  return file;
}

void sync_together(std::span<const std::function<void()>> syncs) {
  constexpr std::size_t max_threads = 8;
  const std::size_t threads = std::min(syncs.size(), max_threads);
  std::vector<std::exception_ptr> failures(syncs.size());
  in_team(int(threads), [&](int first) {  // all of them, even if one fails
    for (std::size_t i = std::size_t(first); i < syncs.size(); i += threads) try {
        syncs[i]();
      } catch (...) {
        failures[i] = std::current_exception();
      }
  });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

std::vector<std::byte> read_whole(const std::string& path, std::int64_t max_bytes, device::Engine* engine,
                                  int directory) {
  device::File file(path, {.create = false,
                           .read_only = true,
                           .page_cache = device::PageCache::buffered,
                           .engine = engine,
                           .directory = directory});
  const std::int64_t length = file.length();
  if (length > max_bytes)
    throw Error(EFBIG, {.attempted = "read",
                        .path = path,
                        .size_bytes = length,
                        .detail = "at most " + std::to_string(max_bytes) + " were expected"});
  std::vector<std::byte> bytes;
  try {
    bytes.resize(static_cast<std::size_t>(length));
  } catch (const std::bad_alloc&) {
    throw Error(ENOMEM, {.attempted = "read", .path = path, .size_bytes = length});
  }
  bytes.resize(static_cast<std::size_t>(file.read(bytes, 0)));
  return bytes;
}

}  // namespace outcore::store
