// Directories of processes inside scratch.
//
// A directory belongs to a live process exactly while the file `lock` in it is locked. flock is released by
// the kernel when the process dies, however it dies, and cannot be confused by a pid that is used again.
//
// Making and cleaning may race. A maker creates the directory, then the lock file, locks it, and looks
// whether the lock file still has its name: a cleaner that came in between has removed it, and the maker
// takes another name. A cleaner removes nothing but an empty directory before it holds the lock.

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <random>

#include "base/uninterrupted.hpp"
#include "device/descriptor.hpp"
#include "device/directory.hpp"
#include "outcore/error.hpp"
#include "outcore/scratch.hpp"

namespace outcore::device {
namespace {

namespace fs = std::filesystem;
constexpr const char* lock_name = "/lock";

[[noreturn]] void fail(int errno_value, const char* attempted, const std::string& path,
                       std::string detail = {}) {
  throw Error(errno_value, {.attempted = attempted, .path = path, .detail = std::move(detail)});
}

/// The prefix of names of directories of this user on this host.
std::string name_prefix() {
  char host[HOST_NAME_MAX + 1] = {};
  if (gethostname(host, sizeof host - 1) != 0) fail(errno, "ask for the host name", "");
  return "outcore-" + std::to_string(geteuid()) + "-" + host + "-";
}

std::string random_digits() {
  static constexpr char digits[] = "0123456789abcdef";
  std::random_device source;
  std::string text;
  for (int i = 0; i < 8; ++i) text += digits[source() % 16];
  return text;
}

/// Whether a name is the prefix followed by <pid>-<random>.
bool has_our_form(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix)) return false;
  const auto dash = name.find('-', prefix.size());
  if (dash == std::string::npos || name.size() - dash - 1 != 8) return false;
  return name.find_first_not_of("0123456789", prefix.size()) == dash &&
         name.find_first_not_of("0123456789abcdef", dash + 1) == std::string::npos;
}

/// Removes a directory whose lock the caller holds. The lock file goes last, so that a removal that was
/// interrupted is resumed by the next one.
void remove_locked(const std::string& directory) {
  const Directory opened(directory, 1);  // no link to somewhere else
  for (const std::string& name : opened.names())
    if (name != lock_name + 1) opened.remove_tree(name);
  opened.remove(lock_name + 1);
  if (rmdir(directory.c_str()) != 0) fail(errno, "remove", directory);
}

/// Removes the directory if its process is dead, and returns whether it did.
bool remove_if_stale(const std::string& directory) {
  struct stat status{};
  if (lstat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
    return false;
  const int fd = open_at(AT_FDCWD, directory + lock_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW).release();
  if (fd < 0) return errno == ENOENT && rmdir(directory.c_str()) == 0;
  struct Closer {
    int fd;
    ~Closer() { close(fd); }
  } closer{fd};
  if (uninterrupted([&] { return flock(fd, LOCK_EX | LOCK_NB); }) != 0)
    return false;                                                     // alive, or a file system without locks
  if (fstat(fd, &status) != 0 || status.st_nlink == 0) return false;  // another cleaner was faster
  remove_locked(directory);
  return true;
}

class ProcessDirectory {
 public:
  explicit ProcessDirectory(const std::string& scratch) {
    const auto stem = scratch + "/" + name_prefix() + std::to_string(getpid()) + "-";
    do path_ = stem + random_digits();
    while (!make());
  }
  ~ProcessDirectory() {
    if (fd_ < 0) return;
    try {
      remove_locked(path_);
    } catch (const Error&) {  // removed by another process, or impossible: the next process tries again
    }
    close(fd_);
  }
  ProcessDirectory(const ProcessDirectory&) = delete;
  ProcessDirectory& operator=(const ProcessDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Whether the directory of that name is still the one that was made here.
  [[nodiscard]] bool exists() const {
    struct stat there{}, lock{}, named{};
    return lstat(path_.c_str(), &there) == 0 && S_ISDIR(there.st_mode) && there.st_uid == geteuid() &&
           fstat(fd_, &lock) == 0 && lstat((path_ + lock_name).c_str(), &named) == 0 &&
           lock.st_dev == named.st_dev && lock.st_ino == named.st_ino;
  }

  /// In a forked child: the directory is the parent's. The lock belongs to the open file, which the child
  /// must close.
  void abandon() noexcept {
    close(fd_);
    fd_ = -1;
  }

 private:
  /// False if a cleaner took it for stale before it was locked, or the name is taken.
  bool make() {
    if (mkdir(path_.c_str(), 0700) != 0) {
      if (errno == EEXIST) return false;
      fail(errno, "make scratch directory", path_);
    }
    fd_ = open_at(AT_FDCWD, path_ + lock_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)
              .release();
    if (fd_ < 0) {
      if (errno == ENOENT) return false;
      const int reason = errno;
      rmdir(path_.c_str());
      fail(reason, "make", path_ + lock_name);
    }
    struct stat status{};
    const bool taken =
        uninterrupted([&] { return flock(fd_, LOCK_EX | LOCK_NB); }) != 0 && errno == EWOULDBLOCK;
    if (!taken && fstat(fd_, &status) == 0 && status.st_nlink > 0) return true;
    close(fd_);
    fd_ = -1;
    return false;
  }

  std::string path_;
  int fd_ = -1;
};

/// The directories of this process, by scratch directory.
struct Directories {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<ProcessDirectory>> by_scratch;

  Directories() { pthread_atfork(prepare, parent, child); }
  static Directories& instance() {
    static Directories directories;
    return directories;
  }

 private:
  static void prepare() { instance().mutex.lock(); }
  static void parent() { instance().mutex.unlock(); }
  static void child() {
    for (auto& [scratch, directory] : instance().by_scratch)
      if (directory) directory->abandon();
    instance().by_scratch.clear();
    instance().mutex.unlock();
  }
};

}  // namespace

std::string process_directory(const std::string& scratch) {
  const auto resolved = checked_scratch(scratch);
  auto& directories = Directories::instance();
  const std::lock_guard guard(directories.mutex);
  auto& directory = directories.by_scratch[resolved];
  if (directory && directory->exists()) return directory->path();
  try {
    clean(resolved);
  } catch (const Error&) {  // one that cannot be removed must not prevent a job; `clean` itself tells
  }
  directory.reset();
  directory = std::make_unique<ProcessDirectory>(resolved);
  return directory->path();
}

void remove_process_directories() {
  auto& directories = Directories::instance();
  const std::lock_guard guard(directories.mutex);
  directories.by_scratch.clear();
}

std::vector<std::string> clean(const std::string& scratch) {
  const auto resolved = checked_scratch(scratch);
  const auto prefix = name_prefix();
  std::vector<std::string> found, removed;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(resolved, code))
    if (has_our_form(entry.path().filename(), prefix)) found.push_back(entry.path());
  if (code) fail(code.value(), "list", resolved);
  std::sort(found.begin(), found.end());
  std::copy_if(found.begin(), found.end(), std::back_inserter(removed), remove_if_stale);
  return removed;
}

}  // namespace outcore::device
