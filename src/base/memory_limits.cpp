#include "base/memory_limits.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include "base/control_groups.hpp"

namespace outcore {
namespace {

using std::filesystem::path;
using Number = std::optional<std::int64_t>;

constexpr std::int64_t without_limit = std::int64_t{1}
                                       << 60;  // version 1 writes the largest multiple of a page

/// The number at the beginning of a text; null for "max", "unlimited" and the like, and for numbers above any
/// memory.
Number number_of(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t:"), text.size()));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value >= without_limit) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

Number number_in(const path& name) {
  std::ifstream file(name);
  std::string line;
  return std::getline(file, line) ? number_of(line) : std::nullopt;
}

/// The number in the first line that begins with the key.
Number number_after(const path& name, std::string_view key) {
  std::ifstream file(name);
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, key.size(), key) == 0) return number_of(std::string_view(line).substr(key.size()));
  return std::nullopt;
}

class Limits {
 public:
  explicit Limits(path root) : root_(std::move(root)) {}

  std::vector<MemoryLimit> all() {
    machine();
    for (const ControlGroup& group : control_groups("memory", root_)) groups(group);
    process("ulimit -v (RLIMIT_AS)", "Max address space", "VmSize:");
    process("ulimit -d (RLIMIT_DATA)", "Max data size", "VmData:");
    slurm();
    return std::move(found_);
  }

 private:
  void machine() {
    const path name = root_ / "proc/meminfo";
    const auto total = number_after(name, "MemTotal:"), available = number_after(name, "MemAvailable:");
    const std::int64_t bytes =
        total ? *total * 1024 : static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    add("memory of the machine", name, bytes, available ? *available * 1024 : bytes);
    found_.back().hard = false;
  }

  void groups(const ControlGroup& group) {
    const bool second = group.version == 2;
    // Memory that the kernel can drop is not in use: the page cache of files that were not read again.
    const auto used = number_in(group.directory / (second ? "memory.current" : "memory.usage_in_bytes"));
    const auto droppable =
        number_after(group.directory / "memory.stat", second ? "inactive_file " : "total_inactive_file ");
    const auto limit = [&](const char* name, const path& file, Number bytes) {
      if (bytes) add(name, file, *bytes, *bytes - used.value_or(0) + droppable.value_or(0));
    };
    for (const char* name : {"memory.max", "memory.high", "memory.limit_in_bytes"})
      limit(name, group.directory / name, number_in(group.directory / name));
    const path statistics = group.directory / "memory.stat";  // of groups around that cannot be seen, too
    limit("hierarchical_memory_limit", statistics, number_after(statistics, "hierarchical_memory_limit "));
  }

  void process(const char* name, std::string_view key, std::string_view taken) {
    const path file = root_ / "proc/self/limits";
    const auto bytes = number_after(file, key);
    if (!bytes) return;
    const std::int64_t used = number_after(root_ / "proc/self/status", taken).value_or(0) * 1024;
    add(name, file, *bytes, *bytes - used);
    found_.back().shared = false;
  }

  /// In MB. Where Slurm does not enforce it by control groups, it ends jobs that use more.
  void slurm() {
    const auto number = [](const char* name) -> Number {
      const char* text = std::getenv(name);
      return text ? number_of(text) : std::nullopt;
    };
    const auto node = number("SLURM_MEM_PER_NODE"), core = number("SLURM_MEM_PER_CPU");
    const auto cores = number("SLURM_CPUS_ON_NODE");
    constexpr std::int64_t unit = 1 << 20;
    const std::int64_t resident = number_after(root_ / "proc/self/status", "VmRSS:").value_or(0) * 1024;
    if (node && *node > 0)  // 0: all of it
      add("SLURM_MEM_PER_NODE", "the environment", *node * unit, *node * unit - resident);
    else if (core && *core > 0 && cores && *cores > 0)
      add("SLURM_MEM_PER_CPU", "the environment", *core * *cores * unit, *core * *cores * unit - resident);
  }

  void add(const char* name, const path& source, std::int64_t limit, std::int64_t left) {
    found_.push_back({name, source, limit, std::clamp<std::int64_t>(left, 0, limit), true, true});
  }

  path root_;
  std::vector<MemoryLimit> found_;
};

}  // namespace

std::vector<MemoryLimit> memory_limits(const path& root) {
  return Limits(root).all();
}

}  // namespace outcore
