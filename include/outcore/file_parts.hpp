// Parts of a file, and memory that they are moved from or to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace outcore::store {

/// A piece of the file, and memory of its size that it is read into or written from.
struct ReadPart {
  std::int64_t offset = 0;
  std::span<std::byte> memory = {};
};
struct WritePart {
  std::int64_t offset = 0;
  std::span<const std::byte> memory = {};
};

}  // namespace outcore::store
