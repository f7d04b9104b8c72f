#include "store/codec.hpp"

#include <blosc2.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "outcore/error.hpp"
#include "store/fixed_point.hpp"

namespace outcore::store {
namespace {

struct FreeContext {
  void operator()(blosc2_context* context) const noexcept { blosc2_free_ctx(context); }
};
using Context = std::unique_ptr<blosc2_context, FreeContext>;

/// Only the last of the six filters of Blosc2's pipeline is used.
constexpr std::size_t filter_place = BLOSC2_MAX_FILTERS - 1;

/// Blosc2 keeps the size of an element in one byte.
std::int32_t type_size(std::size_t element_bytes) {
  return element_bytes < 256 ? static_cast<std::int32_t>(element_bytes) : 1;
}

std::uint8_t filter_code(Filter filter) {
  switch (filter) {
    case Filter::shuffle:
      return BLOSC_SHUFFLE;
    case Filter::bitshuffle:
      return BLOSC_BITSHUFFLE;
    case Filter::none:
      break;
  }
  return BLOSC_NOFILTER;
}

Context make_encoder(const CodecOptions& options, std::size_t element_bytes) {
  blosc2_cparams parameters = BLOSC2_CPARAMS_DEFAULTS;
  parameters.compcode = options.compressor == Compressor::lz4 ? BLOSC_LZ4 : BLOSC_ZSTD;
  parameters.clevel = options.level;
  parameters.typesize = type_size(element_bytes);
  parameters.nthreads = 1;
  std::fill_n(parameters.filters, BLOSC2_MAX_FILTERS, std::uint8_t{BLOSC_NOFILTER});
  std::fill_n(parameters.filters_meta, BLOSC2_MAX_FILTERS, std::uint8_t{0});
  parameters.filters[filter_place] = filter_code(options.filter);
  return Context(blosc2_create_cctx(parameters));
}

/// A context takes as long to make as a small chunk to compress, so each thread keeps the one it used last.
struct Encoder {
  CodecOptions options;
  std::size_t element_bytes = 0;
  Context context;
};

blosc2_context* encoder_for(const CodecOptions& options, std::size_t element_bytes) {
  thread_local Encoder kept;
  if (!kept.context || kept.options != options || kept.element_bytes != element_bytes)
    kept = {options, element_bytes, make_encoder(options, element_bytes)};
  if (!kept.context) throw Error(ENOMEM, {.attempted = "preparation of a compression"});
  return kept.context.get();
}

blosc2_context* decoder() {
  thread_local const Context kept = [] {
    blosc2_dparams parameters = BLOSC2_DPARAMS_DEFAULTS;
    parameters.nthreads = 1;
    return Context(blosc2_create_dctx(parameters));
  }();
  if (!kept) throw Error(ENOMEM, {.attempted = "preparation of a decompression"});
  return kept.get();
}

[[noreturn]] void refuse(const std::string& detail) {
  throw Error(EIO, {.attempted = "decompression", .detail = detail});
}

std::int32_t int32_at(std::span<const std::byte> bytes, std::size_t offset) {
  std::int32_t value;
  std::memcpy(&value, &bytes[offset], sizeof value);
  return value;
}

/// Blosc2's format has many features that `encode` never uses (dictionaries, codecs and filters of the user,
/// chunks that are read from elsewhere when needed). Damaged input must not reach them.
void check_header(const CodecOptions& options, std::size_t element_bytes, std::span<const std::byte> from,
                  std::size_t size) {
  const auto byte_at = [&](std::size_t offset) { return std::to_integer<unsigned>(from[offset]); };
  if (from.size() < BLOSC_EXTENDED_HEADER_LENGTH || from.size() > max_encoded_bytes ||
      size > max_encoded_bytes)
    refuse(std::to_string(from.size()) + " bytes are none of a chunk of " + std::to_string(size));
  const unsigned flags = byte_at(BLOSC2_CHUNK_FLAGS), more_flags = byte_at(BLOSC2_CHUNK_BLOSC2_FLAGS);
  constexpr unsigned extended = BLOSC_DOSHUFFLE | BLOSC_DOBITSHUFFLE, lazy = 0x08;
  const unsigned format = flags >> 5;
  const unsigned expected_format =
      options.compressor == Compressor::lz4 ? BLOSC_LZ4_FORMAT : BLOSC_ZSTD_FORMAT;
  const bool plain = (flags & extended) == extended && (flags & BLOSC_DODELTA) == 0 &&
                     (more_flags & (BLOSC2_USEDICT | BLOSC2_BIGENDIAN | BLOSC2_INSTR_CODEC | lazy)) == 0 &&
                     byte_at(BLOSC2_CHUNK_BLOSC2_FLAGS2) == 0;
  bool filters = true;
  for (std::size_t i = 0; i < BLOSC2_MAX_FILTERS; ++i)
    filters = filters &&
              byte_at(BLOSC2_CHUNK_FILTER_CODES + i) ==
                  (i == filter_place ? filter_code(options.filter) : unsigned{BLOSC_NOFILTER}) &&
              byte_at(BLOSC2_CHUNK_FILTER_META + i) == 0;
  if (!plain || !filters || format != expected_format ||
      byte_at(BLOSC2_CHUNK_TYPESIZE) != static_cast<unsigned>(type_size(element_bytes)))
    refuse("it was not compressed as " + text(options));
  const std::int32_t block = int32_at(from, BLOSC2_CHUNK_BLOCKSIZE);
  if (int32_at(from, BLOSC2_CHUNK_NBYTES) != static_cast<std::int32_t>(size) ||
      int32_at(from, BLOSC2_CHUNK_CBYTES) != static_cast<std::int32_t>(from.size()) || block < 1 ||
      block > BLOSC2_MAXBLOCKSIZE)
    refuse("the sizes in it are not those of a chunk of " + std::to_string(size) + " bytes");
}

// ---- what programs add

constexpr int first_added = static_cast<int>(Codec::first_added);

/// Read for every chunk, without a lock. Entries stay until the process ends.
std::array<std::atomic<const ChunkCodec*>, 256 - first_added> added_codecs{};

/// Null: nobody has added it.
const ChunkCodec* added(Codec codec) noexcept {
  const int place = static_cast<int>(codec) - first_added;
  return place < 0 ? nullptr : added_codecs[static_cast<std::size_t>(place)].load(std::memory_order_acquire);
}

const ChunkCodec& added_or_refused(Codec codec) {
  const ChunkCodec* const found = added(codec);
  if (!found)
    throw Error(ENOTSUP, {.attempted = "choice of a codec",
                          .detail = "the program has not added codec " + std::to_string(int(codec))});
  return *found;
}

}  // namespace

void add_codec(Codec number, std::shared_ptr<const ChunkCodec> codec) {
  if (!codec || number < Codec::first_added)
    throw Error(EINVAL, {.attempted = "add codec " + std::to_string(int(number)),
                         .detail = codec ? "numbers of programs begin at " + std::to_string(first_added)
                                         : "there is none"});
  static std::mutex mutex;
  static std::vector<std::shared_ptr<const ChunkCodec>>& kept =
      *new std::vector<std::shared_ptr<const ChunkCodec>>;  // others may still read when the process ends
  const std::lock_guard lock(mutex);
  if (const ChunkCodec* const other = added(number))
    throw Error(EEXIST, {.attempted = "add codec " + std::to_string(int(number)),
                         .detail = "'" + other->name() + "' has that number"});
  kept.push_back(std::move(codec));
  added_codecs[static_cast<std::size_t>(static_cast<int>(number) - first_added)].store(
      kept.back().get(), std::memory_order_release);
}

Codec codec_named(const std::string& name) {
  for (std::size_t place = 0; place < added_codecs.size(); ++place) {
    const ChunkCodec* const codec = added_codecs[place].load(std::memory_order_acquire);
    if (codec && codec->name() == name) return static_cast<Codec>(static_cast<int>(place) + first_added);
  }
  return Codec::none;
}

CodecOptions blosc2_for(std::size_t element_bytes, Compressor compressor, int level) {
  const CodecOptions options{.codec = Codec::blosc2,
                             .compressor = compressor,
                             .filter = element_bytes > 1 ? Filter::shuffle : Filter::bitshuffle,
                             .level = static_cast<std::uint8_t>(std::clamp(level, 0, 255))};
  check(options);
  return options;
}

std::string text(const CodecOptions& options) {
  if (options.codec == Codec::none) return "none";
  if (options.codec == Codec::fixed_point) return "fixed-point";
  if (options.codec >= Codec::first_added) {
    const ChunkCodec* const codec = added(options.codec);
    return (codec ? codec->name() : "codec " + std::to_string(int(options.codec))) + " (" +
           std::to_string(options.level) + ")";
  }
  const char* filter = options.filter == Filter::none      ? "no filter"
                       : options.filter == Filter::shuffle ? "shuffle"
                                                           : "bitshuffle";
  return std::string("blosc2 (") + (options.compressor == Compressor::lz4 ? "lz4 " : "zstd ") +
         std::to_string(options.level) + ", " + filter + ")";
}

void check(const CodecOptions& options) {
  if (options.codec == Codec::none) return;
  const bool is_added = options.codec >= Codec::first_added;
  if (is_added) (void)added_or_refused(options.codec);
  const bool known = (is_added || options.codec == Codec::blosc2 || options.codec == Codec::fixed_point) &&
                     (options.compressor == Compressor::lz4 || options.compressor == Compressor::zstd) &&
                     (options.filter == Filter::none || options.filter == Filter::shuffle ||
                      options.filter == Filter::bitshuffle) &&
                     options.level >= 1 && options.level <= 9;
  if (!known)
    throw Error(EINVAL,
                {.attempted = "choice of a codec",
                 .detail = "codec " + std::to_string(int(options.codec)) + ", compressor " +
                           std::to_string(int(options.compressor)) + ", filter " +
                           std::to_string(int(options.filter)) + ", level " + std::to_string(options.level) +
                           ": there is no such combination (levels are 1 to 9)"});
}

std::size_t encode(const CodecOptions& options, std::size_t element_bytes, std::span<const std::byte> from,
                   std::span<std::byte> to) {
  if (options.codec == Codec::none || from.size() > max_encoded_bytes)
    throw Error(EINVAL, {.attempted = "compression", .size_bytes = static_cast<std::int64_t>(from.size())});
  if (options.codec == Codec::fixed_point) return encode_fixed_point(from, to);
  if (options.codec != Codec::blosc2) {
    const ChunkCodec& codec = added_or_refused(options.codec);
    const std::size_t size = codec.encode(options.level, element_bytes, from, to);
    if (size > to.size())
      throw Error(EINVAL, {.attempted = "compression as " + text(options),
                           .size_bytes = static_cast<std::int64_t>(from.size()),
                           .detail = "the codec says that it has filled " + std::to_string(size) + " of " +
                                     std::to_string(to.size()) + " bytes"});
    return size;
  }
  const auto room = static_cast<std::int32_t>(std::min<std::size_t>(to.size(), max_encoded_bytes));
  if (room < BLOSC_EXTENDED_HEADER_LENGTH) return 0;
  const int size = blosc2_compress_ctx(encoder_for(options, element_bytes), from.data(),
                                       static_cast<std::int32_t>(from.size()), to.data(), room);
  if (size < 0)
    throw Error(ENOMEM, {.attempted = "compression",
                         .size_bytes = static_cast<std::int64_t>(from.size()),
                         .detail = "blosc2: " + std::string(blosc2_error_string(size))});
  return static_cast<std::size_t>(size);
}

void decode(const CodecOptions& options, std::size_t element_bytes, std::span<const std::byte> from,
            std::span<std::byte> to) {
  if (options.codec >= Codec::first_added)
    return added_or_refused(options.codec).decode(element_bytes, from, to);
  if (options.codec == Codec::fixed_point) return decode_fixed_point(from, to);
  check_header(options, element_bytes, from, to.size());
  const int size = blosc2_decompress_ctx(decoder(), from.data(), static_cast<std::int32_t>(from.size()),
                                         to.data(), static_cast<std::int32_t>(to.size()));
  if (size < 0 || static_cast<std::size_t>(size) != to.size())
    refuse(size < 0 ? "blosc2: " + std::string(blosc2_error_string(size))
                    : std::to_string(size) + " of " + std::to_string(to.size()) + " bytes came out");
}

}  // namespace outcore::store
