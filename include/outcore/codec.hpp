// Codecs: lossless compression of chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace outcore::store {

// The numbers are those in files; they never change.
enum class Codec : std::uint8_t { none = 0, blosc2 = 1 };
enum class Compressor : std::uint8_t { lz4 = 1, zstd = 2 };
enum class Filter : std::uint8_t {
  none = 0,
  shuffle = 1,    ///< bytes of equal significance together: for floating-point numbers
  bitshuffle = 2  ///< bits of equal significance together: for integers of which few bits are used
};

struct CodecOptions {
  Codec codec = Codec::none;
  // The rest has no meaning for Codec::none.
  Compressor compressor = Compressor::zstd;
  Filter filter = Filter::shuffle;
  std::uint8_t level = 1;  ///< 1 (fast) .. 9 (small)

  friend bool operator==(const CodecOptions&, const CodecOptions&) = default;
};

/// Blosc2 with the filter that suits elements of this size: bits of single bytes, bytes of larger ones.
[[nodiscard]] CodecOptions blosc2_for(std::size_t element_bytes, Compressor compressor = Compressor::zstd,
                                      int level = 1);
[[nodiscard]] std::string text(const CodecOptions& options);  ///< "none", "blosc2 (zstd 1, shuffle)"

/// Throws Error(EINVAL) for numbers that name no codec, compressor, filter or level.
void check(const CodecOptions& options);

inline constexpr std::int64_t most_encoded_bytes = std::int64_t{1} << 30;  ///< of one chunk

/// Compresses `from` into `to` and returns the size; 0 if `to` is too small for that, which is how a chunk
/// shows that it does not shrink. Any thread. Throws Error (ENOMEM, EINVAL for Codec::none or a chunk larger
/// than most_encoded_bytes).
[[nodiscard]] std::size_t encode(const CodecOptions& options, std::size_t element_bytes,
                                 std::span<const std::byte> from, std::span<std::byte> to);

/// Fills `to` from what `encode` made of a piece of that size with these options. Throws Error(EIO) if `from`
/// cannot be that: it may be anything, and nothing outside of it and of `to` is touched.
void decode(const CodecOptions& options, std::size_t element_bytes, std::span<const std::byte> from,
            std::span<std::byte> to);

}  // namespace outcore::store
