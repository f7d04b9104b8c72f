// CRC-32C: published vectors, the instruction against the tables, pieces against the whole.
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "store/checksum.hpp"
#include "support/check.hpp"

using namespace outcore::store;

namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

/// One bit at a time, as the standard defines it.
std::uint32_t by_definition(std::span<const std::byte> bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

void vector_holds(std::span<const std::byte> bytes, std::uint32_t expected) {
  check::equal(crc32c(bytes), expected);
  for (const std::string& implementation : crc32c_implementations())
    check::equal(crc32c_by(implementation, bytes), expected);
}

}  // namespace

TEST("vectors of RFC 3720") {
  Bytes bytes(32);
  vector_holds(bytes, 0x8A9136AA);
  std::memset(bytes.data(), 0xFF, bytes.size());
  vector_holds(bytes, 0x62A8AB43);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i);
  vector_holds(bytes, 0x46DD794E);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(31 - i);
  vector_holds(bytes, 0x113FDB5C);
  vector_holds(std::as_bytes(std::span(std::string_view("123456789"))), 0xE3069283);
  vector_holds({}, 0);
}

TEST("every length and alignment gives what the definition gives") {
  const Bytes bytes = random_bytes(2000, 1);
  for (std::size_t size = 0; size < 1900; size += size < 40 ? 1 : 37)
    for (std::size_t offset = 0; offset < 9; ++offset)
      vector_holds(std::span(bytes).subspan(offset, size),
                   by_definition(std::span(bytes).subspan(offset, size)));
}

TEST("long pieces give the same in every implementation this processor has") {
  const Bytes bytes = random_bytes(200'000, 2);
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const std::size_t offset = random() % 100, size = random() % (bytes.size() - offset);
    const auto piece = std::span(bytes).subspan(offset, size);
    for (const std::string& implementation : crc32c_implementations())
      check::equal(crc32c_by(implementation, piece), crc32c_by("table", piece));
  }
}

TEST("pieces, one after another or combined, give the checksum of the whole") {
  const Bytes bytes = random_bytes(100'000, 4);
  const std::uint32_t whole = crc32c(bytes);
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    const std::size_t cut = random() % (bytes.size() + 1);
    const auto first = std::span(bytes).first(cut), second = std::span(bytes).subspan(cut);
    check::equal(crc32c(second, crc32c(first)), whole);
    for (const std::string& implementation : crc32c_implementations())
      check::equal(crc32c_by(implementation, second, crc32c_by(implementation, first)), whole);
    check::equal(crc32c_combine(crc32c(first), crc32c(second), second.size()), whole);
  }
}

TEST("every single flipped bit is seen") {
  Bytes bytes = random_bytes(4096, 6);
  const std::uint32_t whole = crc32c(bytes);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte(1U << bit % 8);
    check::is_true(crc32c(bytes) != whole);
    bytes[bit / 8] ^= std::byte(1U << bit % 8);
  }
}

TEST_MAIN
