// Layout of a packed slab; shared by the codec and by the estimate of stored sizes.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace outcore::chem {

inline constexpr std::size_t packed_alignment = 8;

/// Header of a packed slab. `shells` labels (16 bit) and as many codes of steps (8 bit) follow, then, aligned
/// to 8, the rows. A row is [exact double x n8][int32 x n4][int16 x (n3 + n2)][uint8 x n3][int8 x n1]; a
/// 3-byte value is split into its high 16 and its low 8 bits so that decoding stays vectorised. SlabCodec
/// defines the meaning of the integers. Measured: [M35].
struct PackedSlab {
  std::uint32_t bytes;  ///< size of the packed slab with its header, a multiple of 8
  std::uint16_t i, j, k;
  std::uint16_t shells;
  std::uint16_t n8, n4, n3, n2, n1;  ///< columns of each width
  std::uint16_t dither;              ///< number of the dither sequence
  std::uint16_t first_pair, pairs;   ///< pairs of functions of i and j
};

/// Steps are powers of 2^(1/4), from 1 (code 0) down.
inline constexpr int codes_per_octave = 4, last_code = 255;

/// Code of the largest step up to this one (at most 1).
inline int code_below(double step) noexcept {
  const double code = std::ceil(-codes_per_octave * std::log2(step));
  return code < last_code ? int(code) : last_code;
}

/// How the values of one shell l are stored, given the largest of them: the fewest bytes that can represent
/// it in steps no larger than `step`, and the finest step for these bytes.
struct PackedForm {
  int width, code;
};
inline PackedForm packed_form(double largest, double step) noexcept {
  const int coarsest = code_below(step);
  for (int width = 1; width <= 4; ++width) {
    const double reach = double((1ll << (8 * width - 1)) - 2);  // one is lost to dither
    const double code = std::floor(codes_per_octave * std::log2(reach / largest));
    if (code >= coarsest) return {width, code < last_code ? int(code) : last_code};
  }
  return {8, 0};
}

}  // namespace outcore::chem
