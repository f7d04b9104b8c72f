#include "device/undo_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ranges>
#include <string>

#include "base/uninterrupted.hpp"
#include "outcore/error.hpp"

namespace outcore::device {
namespace {

using FileStatus = struct stat;

/// All of a range, or up to the end of the file.
void fetch(int fd, std::vector<std::byte>& bytes, std::int64_t offset) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        pread(fd, bytes.data() + done, bytes.size() - done, offset + static_cast<std::int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Error(errno, {.attempted = "read before a write that may be undone"});
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  bytes.resize(done);
}

void restore(int fd, const std::vector<std::byte>& bytes, std::int64_t offset) {
  const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), offset);
  if (n != static_cast<ssize_t>(bytes.size()))
    throw Error(n < 0 ? errno : EIO, {.attempted = "undo of a write"});
}

}  // namespace

UndoLog::FileKey UndoLog::key_of(int fd) {
  FileStatus about{};
  if (fstat(fd, &about) != 0) throw Error(errno, {.attempted = "stat"});
  return {about.st_dev, about.st_ino};
}

/// The caller's descriptor may demand direct I/O, or be closed before a crash.
int UndoLog::own_descriptor(int fd, const FileKey& key) {
  Descriptor& own = files_[key];
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (!own) own = Descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!own) throw Error(errno, {.attempted = "open", .path = path});
  return own.get();
}

void UndoLog::before_write(const Operation& write) {
  std::lock_guard lock(mutex_);
  const FileKey key = key_of(write.fd);
  const int fd = own_descriptor(write.fd, key);
  FileStatus about{};
  if (fstat(fd, &about) != 0) throw Error(errno, {.attempted = "stat"});
  Entry entry{next_number_++, key, write.offset, about.st_size, write.size_bytes, {}};
  entry.old_bytes.resize(static_cast<std::size_t>(write.size_bytes));
  fetch(fd, entry.old_bytes, write.offset);
  entries_.push_back(std::move(entry));
}

std::uint64_t UndoLog::mark() {
  std::lock_guard lock(mutex_);
  return next_number_;
}

void UndoLog::synced(int fd, std::uint64_t mark) {
  std::lock_guard lock(mutex_);
  const FileKey key = key_of(fd);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.file == key && entry.number < mark; });
}

std::int64_t UndoLog::undo() {
  std::lock_guard lock(mutex_);
  std::int64_t bytes = 0;
  for (const Entry& entry : entries_ | std::views::reverse) {
    const int fd = files_.at(entry.file).get();
    restore(fd, entry.old_bytes, entry.offset);
    FileStatus about{};
    const bool grown = fstat(fd, &about) == 0 && about.st_size > entry.old_length;
    if (grown && uninterrupted([&] { return ftruncate(fd, entry.old_length); }) != 0)
      throw Error(errno, {.attempted = "undo of a write"});
    bytes += entry.size_bytes;
  }
  entries_.clear();
  return bytes;
}

}  // namespace outcore::device
