// Looking at persistent arrays without a world: what they are, and whether they are whole.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/sibling.hpp"

namespace outcore {

/// What a manifest says, as lines for people.
struct ArrayFacts {
  std::vector<std::pair<std::string, std::string>> lines;  ///< name, value
  std::string metadata;
};
/// Throws Error as DiskArray::open does. `contained`: see DiskArrayOptions.
[[nodiscard]] OUTCORE_SIBLING ArrayFacts array_facts(const std::string& path, int contained = 0);

struct Verification {
  std::int64_t chunks = 0;          ///< read
  std::int64_t elsewhere = 0;       ///< components that are not here, on local disks: of other nodes
  std::vector<std::string> damage;  ///< what was found, each with file, chunk and offset
};
/// Reads all of an array, of one node's part if it is on local disks, and checks every checksum. What is
/// damaged is collected. Which parts belong to this node nobody has noted, so one that has been lost on local
/// disks counts as elsewhere; opening the array on all nodes tells. Beside a job that writes it reads the
/// state that was committed last when it began.
[[nodiscard]] OUTCORE_SIBLING Verification verify_array(const std::string& path, int contained = 0);

}  // namespace outcore
