// Numbers packed with a bounded error: each block of 64 has whole multiples of a step, in as few bits as its
// largest number needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/sibling.hpp"

namespace outcore::store {

/// The most bytes that this many packed numbers take.
[[nodiscard]] OUTCORE_SIBLING std::size_t max_packed_bytes(std::size_t count) noexcept;
/// Returns the bytes written to `packed`, which has room for max_packed_bytes. A number comes back with an
/// error of at most `error`, beside the rounding of the last bit. It comes back exactly if `error` is 0, or
/// if its block has a number that is not finite or too large for the step.
OUTCORE_SIBLING std::size_t pack(std::span<const double> numbers, double error, std::byte* packed) noexcept;
/// Throws Error(EIO) for bytes that `pack` has not written.
OUTCORE_SIBLING void unpack(std::span<const std::byte> packed, double error, std::span<double> numbers);

}  // namespace outcore::store
