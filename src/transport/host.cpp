#include "transport/host.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <span>

#include "outcore/error.hpp"

namespace outcore::transport {

namespace {

/// The beginning of a file of /proc, empty if it cannot be read; `errno` says why.
std::string beginning_of(const std::string& path) {
  std::array<char, 512> text{};
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  const ssize_t bytes = ::read(file, text.data(), text.size());
  const int error = errno;
  ::close(file);
  errno = error;
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
}

/// Whether an error is a lack of resources, so that the file may exist.
bool is_scarcity(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM;
}

}  // namespace

std::string host_name() {
  static const std::string found = [] {
    char name[256] = "localhost";
    gethostname(name, sizeof name - 1);
    const std::string path = "/proc/sys/kernel/random/boot_id";
    const std::string boot = beginning_of(path);
    if (boot.empty() && is_scarcity(errno))
      throw Error(errno, {.attempted = "find the name of this host", .path = path});
    return std::string(name) + "/" + boot.substr(0, 8);
  }();
  return found;
}

bool process_exists(int pid) {
  const std::string line = beginning_of("/proc/" + std::to_string(pid) + "/stat");
  if (line.empty()) return is_scarcity(errno) && (::kill(pid, 0) == 0 || errno != ESRCH);
  const auto name_end = line.rfind(')');  // "17 (name) S ..."
  const char state = name_end + 2 < line.size() ? line[name_end + 2] : 'X';
  return state != 'Z' && state != 'X';
}

std::vector<int> numbers_of_names(Transport& transport, const std::string& name) {
  struct Name {
    char text[256];
  };
  Name mine{};
  name.copy(mine.text, sizeof mine.text - 1);
  std::vector<Name> names(static_cast<std::size_t>(transport.size()));
  transport.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(names)));
  std::vector<int> result;
  std::map<std::string, int> numbers;
  for (const Name& each : names)
    result.push_back(numbers.emplace(each.text, static_cast<int>(numbers.size())).first->second);
  return result;
}

}  // namespace outcore::transport
