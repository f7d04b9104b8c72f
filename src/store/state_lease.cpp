#include "store/state_lease.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string_view>

#include "outcore/error.hpp"

namespace outcore::store {
namespace {

/// Another party may have put a symbolic link, or a pipe (whose opening waits for a partner), in the place of
/// a table.
constexpr int no_link = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

bool has_name(const device::Descriptor& file, const device::Directory& directory, const std::string& name) {
  struct stat mine{}, there{};
  return ::fstat(file.get(), &mine) == 0 &&
         ::fstatat(directory.fd(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

std::string path_of(const device::Directory& directory, const std::string& name) {
  return directory.path() + "/" + name;
}

[[noreturn]] void gone(const device::Directory& directory, const std::string& table) {
  throw Error(ENOENT, {.attempted = "open disk array",
                       .path = path_of(directory, table),
                       .detail = "another job commits, or removes the array, at this moment"});
}

}  // namespace

StateLease::StateLease(const device::Directory& directory, const std::string& table)
    : table_(table), lock_(device::open_at(directory.fd(), table, O_RDONLY | no_link)) {
  if (!lock_) throw Error(errno, {.attempted = "open disk array", .path = path_of(directory, table)});
  if (device::try_lock(lock_.file(), LOCK_SH) == device::Locked::by_others) gone(directory, table);
  check(directory);
}

void StateLease::check(const device::Directory& directory) const {
  if (!has_name(lock_.file(), directory, table_)) gone(directory, table_);
}

bool is_read(const device::Directory& directory, const std::string& table) {
  // Exclusive locks on network file systems need a file that is open for writing.
  device::Descriptor file = device::open_at(directory.fd(), table, O_RDWR | no_link);
  if (!file && errno != ENOENT) file = device::open_at(directory.fd(), table, O_RDONLY | no_link);
  if (file && device::try_lock(file, LOCK_EX) == device::Locked::by_others) return true;
  directory.remove(table);
  return false;
}

std::string table_name(int component, std::uint64_t generation) {
  return "table." + std::to_string(component) + "." + std::to_string(generation);
}

std::vector<std::pair<int, std::uint64_t>> tables_in(const device::Directory& directory) {
  constexpr std::string_view prefix = "table.";
  std::vector<std::pair<int, std::uint64_t>> tables;
  for (const std::string& name : directory.names()) {
    if (!name.starts_with(prefix)) continue;
    int component = 0;
    std::uint64_t generation = 0;
    const char* const last = name.data() + name.size();
    const auto dot = std::from_chars(name.data() + prefix.size(), last, component);
    if (dot.ec != std::errc() || dot.ptr == last) continue;
    const auto stop = std::from_chars(dot.ptr + 1, last, generation);
    if (stop.ec == std::errc() && name == table_name(component, generation))
      tables.emplace_back(component, generation);
  }
  return tables;
}

}  // namespace outcore::store
