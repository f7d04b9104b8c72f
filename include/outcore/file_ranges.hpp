// Byte ranges of a file, and memory that they are moved from or to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace outcore {

/// A byte range of a file, given by its offset and by memory of its size that it is read into.
struct ReadRange {
  std::int64_t offset = 0;
  std::span<std::byte> memory = {};
};
/// The same, written from the memory.
struct WriteRange {
  std::int64_t offset = 0;
  std::span<const std::byte> memory = {};
};

}  // namespace outcore
