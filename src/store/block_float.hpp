// Numbers packed with a bounded error: whole multiples of a step, in as few bits as the largest of 64 needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/sibling.hpp"

namespace outcore::store {

/// Room that packing so many numbers needs.
[[nodiscard]] OUTCORE_SIBLING std::size_t max_packed_bytes(std::size_t count) noexcept;
/// Returns the bytes written to `packed`, which has room for max_packed_bytes. Each number comes back with an
/// error of at most `error`, and of rounding of the last bit; with an error of 0, and where a block has a
/// number that is too large for the step or is none, as it is.
OUTCORE_SIBLING std::size_t pack(std::span<const double> numbers, double error, std::byte* packed) noexcept;
/// Throws Error(EIO) for what `pack` has not written.
OUTCORE_SIBLING void unpack(std::span<const std::byte> packed, double error, std::span<double> numbers);

}  // namespace outcore::store
