// Codecs: lossless compression of chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "outcore/api.h"

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
[[nodiscard]] OUTCORE_API CodecOptions blosc2_for(std::size_t element_bytes,
                                                  Compressor compressor = Compressor::zstd, int level = 1);
[[nodiscard]] OUTCORE_API std::string text(
    const CodecOptions& options);  ///< "none", "blosc2 (zstd 1, shuffle)"

}  // namespace outcore::store
