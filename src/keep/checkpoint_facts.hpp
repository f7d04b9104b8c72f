// What a checkpoint says of itself: the metadata of its small array, checked, since anybody may have written
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "outcore/checkpoint.hpp"
#include "outcore/disk_array.hpp"

namespace outcore::keep {

struct CheckpointFacts {
  std::int64_t generation = 0;  ///< 0: none was completed
  std::vector<KeptArray> arrays;
  std::string meta = "null";  ///< JSON
};

/// Letters, digits and _ . + - in the right order.
[[nodiscard]] bool is_name(const std::string& name);
/// The shape of the file of an array: one element for arrays without elements or axes.
[[nodiscard]] std::vector<std::int64_t> file_shape(const std::vector<std::int64_t>& shape);

[[nodiscard]] std::string as_json(const CheckpointFacts& facts);
/// The metadata are those of a checkpoint, maybe of one that is damaged.
[[nodiscard]] bool is_checkpoint(const std::string& metadata);
/// Error: EINVAL (no checkpoint), ENOTSUP (of another format), EIO (damaged: which field).
[[nodiscard]] CheckpointFacts facts_of(const std::string& metadata, const std::string& path);
/// Error(EIO) if the array in the place of another one is not that, naming both.
void check_array(const DiskArray& found, const KeptArray& wanted, const std::string& path);

}  // namespace outcore::keep
