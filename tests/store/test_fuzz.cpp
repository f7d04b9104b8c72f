// Parsers of files with any content: manifest, table, compressed chunk. Valid files are damaged in many
// reproducible ways. Nothing may crash, and no damage may go unnoticed.
//
// LLVMFuzzerTestOneInput is the entry of libFuzzer; with clang and -fsanitize=fuzzer -DOUTCORE_LIBFUZZER this
// file is a fuzzer.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <random>

#include "outcore/error.hpp"
#include "store/codec.hpp"
#include "store/file_header.hpp"
#include "store/samples.hpp"
#include "support/check.hpp"

using namespace outcore;
using namespace outcore::store;
using outcore::array::Manifest;
using samples::Bytes;

namespace {

/// Decodes, and encodes again; returns nothing if the text is refused. Any exception other than Error is a
/// failure.
template <class Parsed>
std::optional<Bytes> parse(std::span<const std::byte> bytes) {
  try {
    return Parsed::decode(bytes, "fuzzed").encode();
  } catch (const Error&) {
    return std::nullopt;
  }
}

template <class Parsed>
void refuses(std::span<const std::byte> bytes, const char* what) {
  check::is_true(!parse<Parsed>(bytes), what);
}

/// Does one of several kinds of damage, which may by chance change nothing.
Bytes damaged(const Bytes& good, const Bytes& other, std::mt19937_64& random) {
  Bytes bytes = good;
  const auto place = [&](const Bytes& in) { return random() % in.size(); };
  switch (random() % 6) {
    case 0:  // a few bits
      for (auto n = 1 + random() % 4; n > 0; --n) bytes[place(bytes)] ^= std::byte(1U << random() % 8);
      break;
    case 1: {  // a run of bytes
      const std::size_t at = place(bytes), size = std::min(bytes.size() - at, 1 + random() % 64);
      for (std::size_t i = 0; i < size; ++i) bytes[at + i] = std::byte(random());
      break;
    }
    case 2: {  // zeros, as where a write was lost
      const std::size_t at = place(bytes), size = std::min(bytes.size() - at, 1 + random() % 512);
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), size, std::byte{0});
      break;
    }
    case 3:  // an end that is missing, or too much
      bytes.resize(random() % (2 * bytes.size()));
      break;
    case 4: {  // a piece of another file
      const std::size_t at = std::min(place(bytes), place(other));
      const std::size_t size = std::min({bytes.size() - at, other.size() - at, 1 + random() % 256});
      std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(at), size,
                  bytes.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    }
    default: {  // an extreme number
      constexpr std::uint64_t numbers[] = {0, 1, ~0ULL, ~0ULL >> 1, 1ULL << 31, 0xFFFFFFFF, 1ULL << 62};
      const std::uint64_t number = numbers[random() % std::size(numbers)];
      const std::size_t size = std::size_t{1} << random() % 4, at = place(bytes);
      std::memcpy(&bytes[at], &number, std::min(size, bytes.size() - at));
    }
  }
  return bytes;
}

constexpr std::size_t version_at = 12;  // in the header

/// The body with a header that fits it, as if a program had written wrong content.
Bytes sealed_again(const Bytes& original, const Bytes& body) {
  FileKind kind{{}, 0, ""};
  std::memcpy(kind.magic.data(), original.data(), kind.magic.size());
  std::memcpy(&kind.version, &original[version_at], sizeof kind.version);
  return with_file_header(kind, body);
}

Bytes body_of(const Bytes& bytes) {
  return {bytes.begin() + file_header_bytes, bytes.end()};
}

template <class Parsed>
void refuses_every_damage(const Bytes& good, const Bytes& other) {
  check::is_true(parse<Parsed>(good) == good, "the good one is read");
  Bytes bytes = good;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte(1U << bit % 8);
    refuses<Parsed>(bytes, "a flipped bit");
    bytes[bit / 8] ^= std::byte(1U << bit % 8);
  }
  for (std::size_t size = 0; size < good.size(); ++size)
    refuses<Parsed>(std::span(good).first(size), "a truncated file");
  std::mt19937_64 random(11);
  for (int i = 0; i < 40'000; ++i) {
    bytes = damaged(good, other, random);
    if (bytes != good) refuses<Parsed>(bytes, "a damaged file");
  }
}

/// With a right checksum the parser itself has to notice what is impossible. Whatever it accepts has a
/// meaning: encoded again it gives the same bytes.
template <class Parsed>
void survives_wrong_bodies(const Bytes& good, const Bytes& other) {
  std::mt19937_64 random(12);
  const Bytes body = body_of(good), other_body = body_of(other);
  int taken = 0;
  for (int i = 0; i < 40'000; ++i) {
    const Bytes bytes = sealed_again(good, damaged(body, other_body, random));
    const auto again = parse<Parsed>(bytes);
    if (again) check::is_true(*again == bytes, "what is taken is what would be written");
    taken += again.has_value();
  }
  check::is_true(taken > 100 && taken < 39'000, std::to_string(taken).c_str());
}

Bytes random_table() {
  return samples::table(samples::geometry(), 5).encode();
}

/// Memory followed by a page where any access crashes, also in code without a sanitizer.
class Guarded {
 public:
  explicit Guarded(std::size_t size) : size_(size), pages_((size + page - 1) / page * page + page) {
    void* const map = mmap(nullptr, pages_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) throw std::bad_alloc();
    map_ = static_cast<std::byte*>(map);
    mprotect(map_ + pages_ - page, page, PROT_NONE);
  }
  ~Guarded() { munmap(map_, pages_); }
  Guarded(const Guarded&) = delete;
  [[nodiscard]] std::span<std::byte> span() const { return {map_ + pages_ - page - size_, size_}; }

 private:
  static constexpr std::size_t page = 4096;
  std::size_t size_, pages_;
  std::byte* map_;
};

void decode_anything(const CodecOptions& codec, std::span<const std::byte> bytes, std::size_t size) {
  const Guarded from(bytes.size()), to(size);
  std::ranges::copy(bytes, from.span().begin());
  try {
    decode(codec, 8, from.span(), to.span());
  } catch (const Error& error) {
    check::equal(error.errno_value(), EIO);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  static_cast<void>(parse<Manifest>(bytes));
  static_cast<void>(parse<SlotTable>(bytes));
  const Bytes body(bytes.begin(), bytes.end());
  static_cast<void>(parse<Manifest>(sealed_again(samples::manifest().encode(), body)));
  static_cast<void>(parse<SlotTable>(sealed_again(random_table(), body)));
  decode_anything(blosc2_for(8), bytes, 30'000);
  decode_anything({.codec = Codec::fixed_point}, bytes, 30'000);
  return 0;
}

TEST("every damage of a manifest is refused") {
  refuses_every_damage<Manifest>(samples::manifest().encode(), random_table());
}

TEST("every damage of a table is refused") {
  refuses_every_damage<SlotTable>(random_table(), samples::manifest().encode());
}

TEST("a manifest that was written wrongly is refused or makes sense") {
  survives_wrong_bodies<Manifest>(samples::manifest().encode(), random_table());
}

TEST("a table that was written wrongly is refused or makes sense") {
  survives_wrong_bodies<SlotTable>(random_table(), samples::manifest().encode());
}

TEST("a damaged chunk is decompressed to something, or refused, and nothing else is touched") {
  std::mt19937_64 random(13);
  for (const CodecOptions& codec : {blosc2_for(8), blosc2_for(8, Compressor::lz4), blosc2_for(1)}) {
    Bytes content(30'000), encoded(30'000), other(30'000);
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = std::byte(i / 5 % 13 * (random() % 3));
    encoded.resize(encode(codec, 8, content, encoded));
    check::is_true(!encoded.empty());
    for (std::byte& each : other) each = std::byte(random());
    for (int i = 0; i < 10'000; ++i) {
      const Bytes bytes = damaged(encoded, other, random);
      decode_anything(codec, bytes, random() % 8 ? content.size() : random() % 60'000);
    }
  }
}

TEST("damaged fixed-point numbers are some numbers, or refused, and nothing else is touched") {
  std::mt19937_64 random(15);
  const CodecOptions codec{.codec = Codec::fixed_point};
  std::vector<double> numbers(3'750);
  for (double& each : numbers) each = 0.125 * double(random() % 1000);
  const auto content = std::as_bytes(std::span(numbers));
  Bytes encoded(30'000), other(30'000);
  encoded.resize(encode(codec, 8, content, encoded));
  check::is_true(!encoded.empty());
  for (std::byte& each : other) each = std::byte(random());
  for (int i = 0; i < 10'000; ++i) {
    const Bytes bytes = damaged(encoded, other, random);
    decode_anything(codec, bytes, random() % 8 ? content.size() : random() % 60'000);
  }
}

TEST("noise is refused by all parsers") {
  std::mt19937_64 random(14);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::uint8_t> bytes(random() % 300);
    for (std::uint8_t& each : bytes) each = static_cast<std::uint8_t>(random());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

#ifndef OUTCORE_LIBFUZZER
TEST_MAIN
#endif
