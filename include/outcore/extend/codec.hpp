// Codecs: lossless compression of chunks, by built-in codecs or by one of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "outcore/api.h"

namespace outcore::store {

// The numbers are those in files; they never change.
enum class Codec : std::uint8_t {
  none = 0,
  blosc2 = 1,
  fixed_point = 2,   ///< for doubles that are whole multiples of a power of two; others do not shrink
  first_added = 128  ///< this number and those above it: codecs that a program adds
};
enum class Compressor : std::uint8_t { lz4 = 1, zstd = 2 };
enum class Filter : std::uint8_t {
  none = 0,
  shuffle = 1,    ///< bytes of equal significance together: for floating-point numbers
  bitshuffle = 2  ///< bits of equal significance together: for integers that use few bits
};

struct CodecOptions {
  Codec codec = Codec::none;
  // Codec::none and Codec::fixed_point ignore the rest; codecs that a program adds ignore compressor and
  // filter.
  Compressor compressor = Compressor::zstd;
  Filter filter = Filter::shuffle;
  std::uint8_t level = 1;  ///< 1 (fast) .. 9 (small)

  friend bool operator==(const CodecOptions&, const CodecOptions&) = default;
};

/// Blosc2 with the filter that suits elements of this size: bitshuffle for single bytes, shuffle for larger
/// ones.
[[nodiscard]] OUTCORE_API CodecOptions blosc2_for(std::size_t element_bytes,
                                                  Compressor compressor = Compressor::zstd, int level = 1);
[[nodiscard]] OUTCORE_API std::string text(
    const CodecOptions& options);  ///< "none", "blosc2 (zstd 1, shuffle)"

/// A codec of the program, for its disk arrays. Called by any thread, several at a time.
class OUTCORE_API ChunkCodec {
 public:
  virtual ~ChunkCodec() = default;
  /// For messages, and for programs that inspect an array.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Compresses `from`, which is not empty, into `to`. Returns the compressed size; 0 if `to` is too small:
  /// then the chunk is stored as it is. The library refuses a size larger than that of `to`: Error(EINVAL).
  [[nodiscard]] virtual std::size_t encode(std::uint8_t level, std::size_t element_bytes,
                                           std::span<const std::byte> from,
                                           std::span<std::byte> to) const = 0;
  /// Fills `to` from the output of `encode` for as many bytes. Throws Error(EIO) if `from` cannot be such
  /// output: it may hold anything, and decode must not touch memory outside `from` and `to`.
  virtual void decode(std::size_t element_bytes, std::span<const std::byte> from,
                      std::span<std::byte> to) const = 0;
};

/// Registers a codec under a number of Codec::first_added or above, in this process, until the process ends.
/// All processes add it before they make or open an array with it; else that throws Error(ENOTSUP). Throws
/// Error: EINVAL (another number, or no codec), EEXIST (the number is taken). Any thread.
OUTCORE_API void add_codec(Codec number, std::shared_ptr<const ChunkCodec> codec);
/// The number of the codec that was added under a name; Codec::none if there is none.
[[nodiscard]] OUTCORE_API Codec codec_named(const std::string& name);

}  // namespace outcore::store

// A skeleton to copy. It leaves out the zeros at the end of a chunk.
#ifdef OUTCORE_SKELETONS

#include <algorithm>
#include <cerrno>

#include "outcore/error.hpp"

namespace outcore::store {

class SkeletonCodec final : public ChunkCodec {
 public:
  [[nodiscard]] std::string name() const override { return "skeleton"; }

  [[nodiscard]] std::size_t encode(std::uint8_t /*level*/, std::size_t /*element_bytes*/,
                                   std::span<const std::byte> from, std::span<std::byte> to) const override {
    std::size_t size = from.size();
    while (size > 1 && from[size - 1] == std::byte{0}) --size;
    if (size > to.size()) return 0;
    std::ranges::copy(from.first(size), to.begin());
    return size;
  }

  void decode(std::size_t /*element_bytes*/, std::span<const std::byte> from,
              std::span<std::byte> to) const override {
    if (from.size() > to.size()) throw Error(EIO, {.attempted = "decompression", .detail = "too many bytes"});
    std::ranges::fill(std::ranges::copy(from, to.begin()).out, to.end(), std::byte{0});
  }
};

}  // namespace outcore::store

#endif
