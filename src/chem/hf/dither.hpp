// The dither of packed integrals: a fixed sequence of pseudo-random numbers, in which each slab and row
// begins at a different place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outcore::chem {

/// The period of the sequence. Its numbers are spread evenly over (-1/2, 1/2): at a random place, the error
/// of any value is zero on average.
inline constexpr std::size_t dither_period = 2048;

[[nodiscard]] const float* dither_sequence() noexcept;  ///< of the period and 65536 more: no row is longer

/// The sequence of a slab, determined by its label.
[[nodiscard]] std::uint16_t dither_seed(int i, int j, int k, int l) noexcept;

/// The place of the sequence where a row of a slab begins.
[[nodiscard]] inline const float* dither_of_row(std::uint16_t seed, std::size_t row) noexcept {
  const std::uint64_t mixed = (std::uint64_t(seed) << 32 | (row + 1)) * 0x9e3779b97f4a7c15u;
  return dither_sequence() + ((mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u >> 53);
}

}  // namespace outcore::chem
