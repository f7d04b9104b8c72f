// Manifests and tables for tests.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "array/manifest.hpp"
#include "store/slot_table.hpp"

namespace samples {

using Bytes = std::vector<std::byte>;

inline outcore::array::Manifest manifest() {
  outcore::array::Manifest manifest;
  manifest.shape = {1000, 2000, 3};
  manifest.chunk = {64, 64, 3};
  manifest.type = outcore::ElementType::complex128;
  manifest.codec = outcore::store::blosc2_for(16);
  manifest.generation = 42;
  manifest.identity = "array t2";
  for (int i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    manifest.components.push_back({.data_name = "data." + number,
                                   .table_name = "table." + number + ".42",
                                   .table_bytes = 1000 + i,
                                   .table_crc = 0xDEADBEEF});
  }
  for (const char c : std::string(R"({"what": "t2"})")) manifest.user.push_back(std::byte(c));
  return manifest;
}

/// Some slots are written, on either side, and some of them compressed.
inline outcore::store::SlotTable table(const outcore::store::Geometry& geometry, unsigned seed = 1) {
  outcore::store::SlotTable table(geometry);
  std::mt19937 random(seed);
  const bool encoded = geometry.codec.codec != outcore::store::Codec::none;
  for (std::int64_t slot = 0; slot < geometry.slots; ++slot) {
    if (random() % 3 == 0) continue;
    const std::int64_t stored = encoded && random() % 2
                                    ? 1 + static_cast<std::int64_t>(random()) % geometry.slot_bytes
                                    : geometry.slot_bytes;
    std::vector<std::uint32_t> checksums(static_cast<std::size_t>(geometry.blocks_in(stored)));
    for (std::uint32_t& each : checksums) each = static_cast<std::uint32_t>(random());
    table.set(slot, geometry.shadow ? static_cast<int>(random() % 2) : 0, stored, checksums);
  }
  return table;
}

inline outcore::store::Geometry geometry(bool encoded = true, bool shadow = true) {
  return {.slot_bytes = 50'000,
          .slots = 23,
          .block_bytes = 16384,
          .element_bytes = 8,
          .codec = encoded ? outcore::store::blosc2_for(8) : outcore::store::CodecOptions{},
          .shadow = shadow};
}

}  // namespace samples
