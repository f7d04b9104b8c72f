// Layout of a packed slab; shared by the codec and by the estimate of stored sizes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outcore::chem {

inline constexpr std::size_t packed_alignment = 8;

/// Header of a packed slab. `shells` labels (16 bit) follow, then, aligned to 8, the rows. A row is
/// [exact double x n8][int32 x n4][int16 x (n3 + n2)][uint8 x n3][int8 x n1]; a 3-byte value is split into
/// its high 16 and its low 8 bits so that decoding stays vectorised.
struct PackedSlab {
  std::uint32_t bytes;  ///< of the packed slab, header included, a multiple of 8
  std::uint16_t i, j, k;
  std::uint16_t shells;
  std::uint16_t n8, n4, n3, n2, n1;  ///< columns of each width
};

/// Bytes that a value of this magnitude (in steps) takes: 0 if it rounds to zero.
inline std::size_t packed_width(double steps) noexcept {
  if (steps < 0.5) return 0;
  if (steps <= 127) return 1;
  if (steps <= 32767) return 2;
  if (steps <= 8388607) return 3;
  return steps <= 2147483647 ? 4 : 8;
}

}  // namespace outcore::chem
