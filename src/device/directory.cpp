#include "device/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "outcore/error.hpp"

namespace outcore::device {
namespace {

constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

[[noreturn]] void fail(int errno_value, const char* attempted, const std::string& path,
                       std::string detail = {}) {
  throw Error(errno_value, {.attempted = attempted, .path = path, .detail = std::move(detail)});
}

/// Removes the last name of a path, and returns it.
std::string_view parent(std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  path = path.substr(0, slash);
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path.empty() ? "/" : path;
}

/// One step down, through no symbolic link. The system says ENOTDIR for a link, too.
Descriptor step(int at, const std::string& name, const std::string& path) {
  if (name.empty() || name == "." || name == "..") fail(EINVAL, "open", path, "'" + name + "' is no name");
  Descriptor next = open_at(at, name, directory_flags | O_NOFOLLOW);
  if (next) return next;
  const int reason = errno;
  struct stat about{};
  if (fstatat(at, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(about.st_mode))
    fail(EINVAL, "open", path, "'" + name + "' is a symbolic link, which is not followed here");
  fail(reason, "open", path);
}

Descriptor walk(const std::string& path, int contained) {
  std::string_view base = path;
  std::vector<std::string> names;
  for (int i = 0; i < contained; ++i) {
    names.push_back(last_name(base));
    base = parent(base);
  }
  Descriptor at = open_at(AT_FDCWD, std::string(base), directory_flags);
  if (!at) fail(errno, "open", path);
  for (; !names.empty(); names.pop_back()) at = step(at.get(), names.back(), path);
  return at;
}

}  // namespace

std::string last_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));  // npos + 1 is 0
}

Directory::Directory(std::string path, int contained) : path_(std::move(path)), fd_(walk(path_, contained)) {}

Directory::Directory(int at, const std::string& name, std::string path)
    : path_(std::move(path)), fd_(step(at, name, path_)) {}

bool Directory::make(const std::string& path, int contained) {
  if (contained == 0) {
    if (::mkdir(path.c_str(), 0777) == 0) return true;
  } else {
    const Descriptor at = walk(std::string(parent(path)), contained - 1);
    if (::mkdirat(at.get(), last_name(path).c_str(), 0777) == 0) return true;
  }
  if (errno == EEXIST) return false;
  fail(errno, "make directory", path);
}

int Directory::fd() const {
  if (!fd_) fail(ENOENT, "open", path_);
  return fd_.get();
}

std::vector<std::string> Directory::names() const {
  Descriptor own = open_at(fd(), ".", directory_flags);  // with a position of its own
  if (!own) fail(errno, "list", path_);
  struct Close {
    void operator()(DIR* open) const noexcept { closedir(open); }
  };
  const std::unique_ptr<DIR, Close> list(fdopendir(own.get()));
  if (!list) fail(errno, "list", path_);
  (void)own.release();  // the list owns it now
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = readdir(list.get()); errno = 0)
    if (const std::string name = entry->d_name; name != "." && name != "..") names.push_back(name);
  if (errno != 0) fail(errno, "list", path_);
  return names;
}

bool Directory::holds(const std::string& name) const {
  struct stat about{};
  return fstatat(fd(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0;
}

bool Directory::is_directory(const std::string& name) const {
  struct stat about{};
  return fstatat(fd(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(about.st_mode);
}

void Directory::remove(const std::string& name) const {
  if (unlinkat(fd(), name.c_str(), 0) != 0 && errno != ENOENT) fail(errno, "remove", path_ + "/" + name);
}

void Directory::remove_tree(const std::string& name) const {
  if (!is_directory(name)) return remove(name);
  {
    const Directory inside(fd(), name, path_ + "/" + name);
    for (const std::string& each : inside.names()) inside.remove_tree(each);
  }
  if (unlinkat(fd(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
    fail(errno, "remove", path_ + "/" + name);
}

}  // namespace outcore::device
