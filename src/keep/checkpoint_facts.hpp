// The facts of a checkpoint: the metadata of its small array. They are checked, because anybody may have
// written them. The format, which python/outcore/keep/checkpoint_facts.py implements, too:
//
//     {"kind": "outcore checkpoint", "format": 2, "generation": 3, "meta": any JSON,
//      "arrays": {"t2": {"kind": "global", "disk" or "numpy", "dtype": "float64", "shape": [4, 5],
//                        "file_shape": [4, 5], "identity": "array t2 of generation 3 of checkpoint ..",
//                        "commits": 1}, ..}}
//
// No member may be missing, none may be added. Generation 0: none was completed. file_shape is [1] for arrays
// without elements or axes, else the shape. identity, commits, dtype and file_shape are those of the manifest
// of the array. A text of C is a string in "meta".
//
// A process that saves makes arrays.<generation>, writes and commits its arrays, commits the small array with
// these metadata, then removes other generations that nobody holds. A process that loads holds a shared lock
// (flock) of the directory of its generation; a process that removes a generation holds an exclusive lock
// until it is removed.
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
/// Whether the metadata are those of a checkpoint, maybe of a damaged one.
[[nodiscard]] bool is_checkpoint(const std::string& metadata);
/// Error: EINVAL (no checkpoint), ENOTSUP (of another format), EIO (damaged: which field).
[[nodiscard]] CheckpointFacts facts_of(const std::string& metadata, const std::string& path);
/// Error(EIO), naming both arrays, if another array is in the place of the expected one.
void check_array(const DiskArray& found, const KeptArray& wanted, const std::string& path);

}  // namespace outcore::keep
