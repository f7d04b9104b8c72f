// The limits of the memory of this process, and how much they leave.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/sibling.hpp"

namespace outcore {

struct MemoryLimit {
  std::string name;              ///< as users know it: "ulimit -v (RLIMIT_AS)", "memory.max"
  std::string source;            ///< the file or the variable that says so
  std::int64_t limit_bytes = 0;  ///< with what is in use
  std::int64_t left_bytes = 0;   ///< what can still be taken; not below 0
  bool shared = true;            ///< all processes of the node share it; else each process has its own
  bool hard = true;  ///< a process that exceeds it fails or is killed; the machine's memory may be swapped

  /// The share of one of `processes` on the node.
  [[nodiscard]] std::int64_t limit_of_one(int processes) const {
    return shared ? limit_bytes / processes : left_bytes;
  }
};

/// All limits: the memory of the machine (always), control groups, the limits of a process on its address
/// space and data (minus memory that is mapped already), and the memory that Slurm has given to the job on
/// the node. `root` is put before all paths: "/", except in tests.
[[nodiscard]] OUTCORE_SIBLING std::vector<MemoryLimit> memory_limits(const std::filesystem::path& root = "/");

}  // namespace outcore
