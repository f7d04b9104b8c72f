#include "world/memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace outcore::world {
namespace {

/// The number in a file; null if there is no file or it says "max".
std::optional<std::int64_t> number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

}  // namespace

std::int64_t total_memory_bytes() {
  std::int64_t total = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers != "memory") continue;  // version 2 names none
    const std::filesystem::path root = "/sys/fs/cgroup/" + controllers;
    for (std::string group = line.substr(second + 1);; group.resize(group.rfind('/'))) {
      const auto directory = root / group.substr(group.empty() ? 0 : 1);
      for (const char* name : {"memory.max", "memory.limit_in_bytes"})
        if (const auto limit = number_in(directory / name)) total = std::min(total, *limit);
      if (group.rfind('/') == std::string::npos) break;
    }
  }
  return total;
}

}  // namespace outcore::world
