// The index of integral records: what a file is read by. It may come from a disk that anybody has written to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/sibling.hpp"
#include "chem/hf/integral_file.hpp"
#include "outcore/error.hpp"

namespace outcore::chem {

/// Of the records that a process wrote, and what found no place.
struct RecordIndex {
  std::vector<IndexedRecord> records;
  std::vector<SlabRange> lost;

  [[nodiscard]] std::vector<std::byte> bytes() const;

  /// Throws Error(EIO), naming `path`, if the bytes are no index of records of `record_bytes`, or if two
  /// records lie in one place.
  [[nodiscard]] static RecordIndex parse(std::span<const std::byte> bytes, std::size_t record_bytes,
                                         const std::string& path);
};

/// Throws Error(EIO) unless the indices of all processes name tasks below `tasks` alone, and no slab of a
/// task twice.
void check_ranges(std::span<const RecordIndex> indices, std::size_t tasks);

/// Reads all records of a kept file: what is damaged, one line for each, also an index that is none. Throws
/// Error(ENOENT) if the file is missing.
[[nodiscard]] OUTCORE_SIBLING std::vector<std::string> damaged_records(std::span<const std::byte> index,
                                                                       std::size_t record_bytes,
                                                                       const std::string& path);

}  // namespace outcore::chem
