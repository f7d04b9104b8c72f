// Lossless compression of double precision numbers that have been rounded: whole multiples of one power of
// two.
#pragma once

#include <cstddef>
#include <span>

namespace outcore::store {

/// Compresses the numbers in `from` into `to` and returns the size; 0 if `to` is too small, or if they are no
/// such numbers: not finite, denormal, a zero with a sign, or no whole count of doubles. The power is found.
/// Any thread. Throws std::bad_alloc.
[[nodiscard]] std::size_t encode_fixed_point(std::span<const std::byte> from, std::span<std::byte> to);

/// Fills `to`, bit by bit. Throws Error(EIO) for what `encode_fixed_point` has not made of as many bytes.
void decode_fixed_point(std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace outcore::store
