// Bytes that tests write and compare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "outcore/exclusive_file.hpp"

using Bytes = std::vector<std::byte>;

inline Bytes pattern(std::size_t size, unsigned seed = 1) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (auto& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

inline Bytes read_back(outcore::file::ExclusiveFile& file, std::size_t size, std::int64_t offset = 0) {
  Bytes bytes(size);
  bytes.resize(static_cast<std::size_t>(file.read(bytes, offset)));
  return bytes;
}
