// Bytes of a file.
#pragma once

#include <cstdint>

namespace outcore {

/// The bytes from `offset` on; none if the size is 0.
struct ByteRange {
  std::int64_t offset = 0, size_bytes = 0;

  [[nodiscard]] std::int64_t end() const noexcept { return offset + size_bytes; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

}  // namespace outcore
