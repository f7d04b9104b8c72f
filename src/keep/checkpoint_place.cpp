#include "keep/checkpoint_place.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "device/directory.hpp"
#include "outcore/error.hpp"

namespace outcore::keep {
namespace {

constexpr std::string_view prefix = "arrays.";
constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool is_generation(std::string_view name) {
  return name.size() > prefix.size() && name.starts_with(prefix) &&
         std::ranges::all_of(name.substr(prefix.size()), [](char c) { return c >= '0' && c <= '9'; });
}

/// Removes a generation unless a process has loaded it; a file system without locks cannot tell. No process
/// can load it during the removal.
void remove_unless_held(const device::Directory& root, const std::string& name) {
  device::Descriptor place = device::open_at(root.fd(), name, flags);
  if (place && device::try_lock(place, LOCK_EX) == device::Locked::by_others) return;
  const device::HeldLock lock(std::move(place));
  root.remove_tree(name);
}

}  // namespace

std::string place_name(std::int64_t generation) {
  return std::string(prefix) + std::to_string(generation);
}

void make_place(const std::string& root, std::int64_t generation) {
  const device::Directory directory(root);
  const std::string name = place_name(generation);
  directory.remove_tree(name);
  if (::mkdirat(directory.fd(), name.c_str(), 0777) != 0)  // a link in its place is an error
    throw Error(errno, {.attempted = "save checkpoint", .path = root + "/" + name});
}

device::HeldLock hold_place(const std::string& root, std::int64_t generation) {
  const std::string path = root + "/" + place_name(generation);
  const auto stale = [&] {
    return Error(ESTALE,
                 {.attempted = "open checkpoint", .path = path, .detail = "it has been replaced meanwhile"});
  };
  struct stat root_is{};
  if (::stat(root.c_str(), &root_is) != 0) return {};
  device::Descriptor place = device::open_at(AT_FDCWD, path, flags);
  if (!place && (errno == ENOTDIR || errno == ELOOP))
    throw Error(EINVAL, {.attempted = "open checkpoint",
                         .path = path,
                         .detail = "no directory; no symbolic link is followed"});
  if (!place && errno != ENOENT) throw Error(errno, {.attempted = "open checkpoint", .path = path});
  struct stat held{}, there{};
  if (!place || device::try_lock(place, LOCK_SH) == device::Locked::by_others ||  // others remove it
      ::fstat(place.get(), &held) != 0 || ::lstat(path.c_str(), &there) != 0 || held.st_dev != there.st_dev ||
      held.st_ino != there.st_ino)
    throw stale();
  return device::HeldLock(std::move(place));
}

void remove_place(const std::string& root, std::int64_t generation) noexcept {
  try {
    device::Directory(root).remove_tree(place_name(generation));
  } catch (const std::exception&) {  // the next saving removes the rest
  }
}

void remove_other_places(const std::string& root, std::int64_t present) noexcept {
  try {
    const device::Directory directory(root);
    for (const std::string& name : directory.names()) {
      if (!is_generation(name) || name == place_name(present)) continue;
      try {
        remove_unless_held(directory, name);
      } catch (const Error&) {  // the other generations may be removed
      }
    }
  } catch (const std::exception&) {
  }
}

}  // namespace outcore::keep
