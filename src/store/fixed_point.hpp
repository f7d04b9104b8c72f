// Lossless compression of double precision numbers that have been rounded: whole multiples of one power of
// two.
#pragma once

#include <cstddef>
#include <span>

namespace outcore::store {

/// Compresses the numbers in `from` into `to` and returns the size; 0 if `to` is too small, or for other
/// input: numbers that are not finite, denormal or -0, or bytes that are no whole number of doubles. Finds
/// the power itself. Any thread. Throws std::bad_alloc.
[[nodiscard]] std::size_t encode_fixed_point(std::span<const std::byte> from, std::span<std::byte> to);

/// Restores `to` exactly. Throws Error(EIO) if `from` is no output of `encode_fixed_point` for as many bytes.
void decode_fixed_point(std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace outcore::store
