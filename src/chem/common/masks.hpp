// Sets of orbitals as bits of a 64-bit mask.
#pragma once

#include <cstdint>

namespace outcore::chem {

/// Electrons in orbitals below `orbital`: their parity is the sign of an operator on that orbital.
[[nodiscard]] inline int below(std::uint64_t mask, int orbital) noexcept {
  return __builtin_popcountll(mask & ((std::uint64_t{1} << orbital) - 1));
}
[[nodiscard]] inline bool occupied(std::uint64_t mask, int orbital) noexcept {
  return mask >> orbital & 1;
}
[[nodiscard]] inline std::uint64_t with(std::uint64_t mask, int orbital) noexcept {
  return mask | std::uint64_t{1} << orbital;
}

}  // namespace outcore::chem
