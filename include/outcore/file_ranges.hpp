// Byte ranges of a file, and memory that they are moved from or to.
#pragma once

#include <cstdint>

#include "outcore/memory.hpp"

namespace outcore {

/// A byte range of a file, given by its offset and by memory of its size that it is read into.
struct ReadRange {
  std::int64_t offset = 0;
  PlainMemory memory = {};
};
/// The same, written from the memory.
struct WriteRange {
  std::int64_t offset = 0;
  ConstPlainMemory memory = {};
};

}  // namespace outcore
