#include "device/opening.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "device/directory.hpp"
#include "outcore/error.hpp"

namespace outcore::device {
namespace {

[[noreturn]] void refuse(int errno_value, const std::string& path, std::string why) {
  throw Error(errno_value, {.attempted = "open", .path = path, .detail = std::move(why)});
}

/// Why a file in a directory with entries of another party is refused; empty if it is accepted.
std::string mistrust(const struct stat& about, const OpenOptions& options) {
  if (!S_ISREG(about.st_mode)) return "it is not a regular file";
  if (options.read_only) return {};
  if (about.st_nlink > 1) return "it has another name (hard link), whose content would change, too";
  struct stat directory{};
  constexpr mode_t everybody = S_ISVTX | S_IWOTH;
  if (fstat(options.directory, &directory) == 0 && (directory.st_mode & everybody) == everybody &&
      about.st_uid != geteuid())
    return "it belongs to another user, in a directory where everybody may make files";
  return {};
}

}  // namespace

Descriptor open_descriptor(const std::string& path, const OpenOptions& options, int flags) {
  const bool inside = options.directory >= 0;
  const std::string name = inside ? last_name(path) : path;
  const int at = inside ? options.directory : AT_FDCWD;
  flags |= O_CLOEXEC | O_NONBLOCK | (inside ? O_NOFOLLOW : 0);
  Descriptor file = open_at(at, name, flags | O_NOATIME, 0666);  // which only the owner may set
  if (!file && errno == EPERM) file = open_at(at, name, flags, 0666);
  if (!file && errno == ELOOP && inside) refuse(EINVAL, path, "it is a symbolic link");
  if (!file) return file;
  const int now = fcntl(file.get(), F_GETFL);
  if (now >= 0) (void)fcntl(file.get(), F_SETFL, now & ~O_NONBLOCK);  // requests wait for the disk
  return file;
}

void check_opened(const std::string& path, const OpenOptions& options, int fd) {
  struct stat about{};
  if (fstat(fd, &about) != 0) throw Error(errno, {.attempted = "stat", .path = path});
  if (S_ISDIR(about.st_mode)) refuse(EISDIR, path, {});
  if (S_ISFIFO(about.st_mode)) refuse(EINVAL, path, "it is a FIFO");
  if (options.directory < 0) return;
  if (std::string why = mistrust(about, options); !why.empty()) refuse(EINVAL, path, std::move(why));
}

void unlink_opened(const std::string& path, const OpenOptions& options) {
  const bool inside = options.directory >= 0;
  const std::string name = inside ? last_name(path) : path;
  if (unlinkat(inside ? options.directory : AT_FDCWD, name.c_str(), 0) != 0)
    throw Error(errno, {.attempted = "unlink", .path = path});
}

}  // namespace outcore::device
