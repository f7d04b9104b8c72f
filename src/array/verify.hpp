// Inspection of persistent arrays without a world: their properties, and whether they are undamaged.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/sibling.hpp"

namespace outcore {

/// The facts of a manifest, as lines for people.
struct ArrayFacts {
  std::vector<std::pair<std::string, std::string>> lines;  ///< name, value
  std::string metadata;
};
/// Throws Error as DiskArray::open does. `contained`: see DiskArrayOptions.
[[nodiscard]] OUTCORE_SIBLING ArrayFacts array_facts(const std::string& path, int contained = 0);

struct Verification {
  std::int64_t chunks = 0;          ///< read
  std::int64_t elsewhere = 0;       ///< components that are not here, on local disks: of other nodes
  std::vector<std::string> damage;  ///< the damages, each with file, chunk and offset
};
/// Reads all of an array (on local disks: the part of this node), checks every checksum, and collects all
/// damage. An array does not record which parts belong to this node, so a part that was lost from a local
/// disk counts as one elsewhere; an opening on all nodes finds it. If another job writes the array, it reads
/// the state that was committed last when it began.
[[nodiscard]] OUTCORE_SIBLING Verification verify_array(const std::string& path, int contained = 0);

}  // namespace outcore
