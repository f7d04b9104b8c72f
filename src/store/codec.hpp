// Lossless compression of chunks by codecs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "outcore/extend/codec.hpp"

namespace outcore::store {

/// Throws Error(EINVAL) for numbers that name no codec, compressor, filter or level, and Error(ENOTSUP) for a
/// codec number of programs that this program has not added.
void check(const CodecOptions& options);

inline constexpr std::int64_t max_encoded_bytes = std::int64_t{1} << 30;  ///< of one chunk

/// Compresses `from` into `to` and returns the size; 0 if `to` is too small, as for a chunk that does not
/// shrink. Any thread. Throws Error: ENOMEM; EINVAL for Codec::none, for a chunk larger than
/// max_encoded_bytes, and for a codec of the program that claims more than `to` has; ENOTSUP as `check`.
[[nodiscard]] std::size_t encode(const CodecOptions& options, std::size_t element_bytes,
                                 std::span<const std::byte> from, std::span<std::byte> to);

/// Fills `to` from the output of `encode` for a piece of that size with these options. Throws Error(EIO) if
/// `from` cannot be such output: it may be anything; no memory outside `from` and `to` is touched.
void decode(const CodecOptions& options, std::size_t element_bytes, std::span<const std::byte> from,
            std::span<std::byte> to);

}  // namespace outcore::store
