#include "array/state_lease.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "array/array_directory.hpp"
#include "outcore/error.hpp"

namespace fs = std::filesystem;

namespace outcore::array {
namespace {

enum class Locked { yes, by_others, cannot };

Locked lock(const device::Descriptor& file, int how) {
  while (::flock(file.get(), how | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Locked::by_others;
    if (errno != EINTR) return Locked::cannot;
  }
  return Locked::yes;
}

bool has_name(const device::Descriptor& file, const std::string& path) {
  struct stat mine{}, there{};
  return ::fstat(file.get(), &mine) == 0 && ::stat(path.c_str(), &there) == 0 &&
         mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

[[noreturn]] void gone(const std::string& table) {
  throw Error(ENOENT, {.attempted = "open disk array",
                       .path = table,
                       .detail = "another job commits, or removes the array, at this moment"});
}

}  // namespace

StateLease::StateLease(const std::string& table)
    : table_(table), lock_(::open(table.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (!lock_) throw Error(errno, {.attempted = "open disk array", .path = table});
  if (lock(lock_, LOCK_SH) == Locked::by_others) gone(table);
  check();
}

void StateLease::check() const {
  if (!has_name(lock_, table_)) gone(table_);
}

bool is_read(const std::string& table) {
  // Locks of network file systems that exclude others need a file that may be written.
  device::Descriptor file(::open(table.c_str(), O_RDWR | O_CLOEXEC));
  if (!file && errno != ENOENT) file = device::Descriptor(::open(table.c_str(), O_RDONLY | O_CLOEXEC));
  if (file && lock(file, LOCK_EX) == Locked::by_others) return true;
  if (::unlink(table.c_str()) != 0 && errno != ENOENT)
    throw Error(errno, {.attempted = "remove", .path = table});
  return false;
}

std::vector<std::pair<int, std::uint64_t>> tables_in(const std::string& directory) {
  constexpr std::string_view prefix = "table.";
  std::vector<std::pair<int, std::uint64_t>> tables;
  std::error_code failed;
  for (fs::directory_iterator entry(directory, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename();
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
  if (failed) throw Error(failed.value(), {.attempted = "open disk array", .path = directory});
  return tables;
}

}  // namespace outcore::array
