// What limits the memory of this process, and what it leaves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/sibling.hpp"

namespace outcore {

struct MemoryLimit {
  std::string name;              ///< as its user knows it: "ulimit -v (RLIMIT_AS)", "memory.max"
  std::string source;            ///< the file or the variable that says so
  std::int64_t limit_bytes = 0;  ///< with what is in use
  std::int64_t left_bytes = 0;   ///< what can still be taken; not below 0
  bool shared = true;            ///< by all processes of the node; else each process has one of its own
  bool hard = true;              ///< who goes over it fails or is ended; the machine's memory may be swapped

  /// Of one of `processes` on the node.
  [[nodiscard]] std::int64_t limit_of_one(int processes) const {
    return shared ? limit_bytes / processes : left_bytes;
  }
};

/// All limits there are, at least that of the machine: its memory, control groups, the limits of a process on
/// its address space and data (what is mapped already is taken off), and what Slurm has given to the job on
/// the node. `root` stands before all paths: "/", but for tests.
[[nodiscard]] OUTCORE_SIBLING std::vector<MemoryLimit> memory_limits(const std::filesystem::path& root = "/");

}  // namespace outcore
