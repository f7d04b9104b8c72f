// The index of integral records, which readers of a file need. It may come from a disk to which others have
// written.
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

/// The records that a process wrote, and the slabs that found no place.
struct RecordIndex {
  std::vector<IndexedRecord> records;
  std::vector<SlabRange> lost;

  [[nodiscard]] std::vector<std::byte> bytes() const;

  /// Throws Error(EIO), naming `path`, if the bytes are no index of records of `record_bytes`, or if two
  /// records lie in one place.
  [[nodiscard]] static RecordIndex parse(std::span<const std::byte> bytes, std::size_t record_bytes,
                                         const std::string& path);
};

/// Throws Error(EIO) unless the indices of all processes name only tasks below `tasks`, and no slab of a task
/// twice.
void check_ranges(std::span<const RecordIndex> indices, std::size_t tasks);

/// Reads all records of a kept file; returns one line for each damage, also for an invalid index. Throws
/// Error(ENOENT) if the file is missing.
[[nodiscard]] OUTCORE_SIBLING std::vector<std::string> damaged_records(std::span<const std::byte> index,
                                                                       std::size_t record_bytes,
                                                                       const std::string& path);

}  // namespace outcore::chem
