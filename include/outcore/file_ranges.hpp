// Byte ranges of a file, each with the memory that it is read into or written from.
#pragma once

#include <cstdint>

#include "outcore/memory.hpp"

namespace outcore {

/// A byte range of a file to read: its offset, and memory of its size to read into.
struct ReadRange {
  std::int64_t offset = 0;
  PlainMemory memory = {};
};
/// A byte range of a file to write: its offset, and memory of its size to write from.
struct WriteRange {
  std::int64_t offset = 0;
  ConstPlainMemory memory = {};
};

}  // namespace outcore
