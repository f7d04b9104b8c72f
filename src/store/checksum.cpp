#include "store/checksum.hpp"

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "outcore/error.hpp"

#ifdef OUTCORE_X86
#include <immintrin.h>
#endif

namespace outcore::store {
namespace {

constexpr std::uint32_t polynomial = 0x82F63B78;  // bits reversed: the lowest is the highest power

/// The first byte is the lowest.
std::uint64_t word_at(const std::byte* data) noexcept {
  std::uint64_t word = 0;
  if constexpr (std::endian::native == std::endian::little)
    std::memcpy(&word, data, sizeof word);
  else
    for (std::size_t k = 0; k < 8; ++k) word |= std::to_integer<std::uint64_t>(data[k]) << (8 * k);
  return word;
}

// ---- by tables: eight bytes at a time

using Table = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Table make_table() {
  Table table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? polynomial : 0);
    table[0][i] = crc;
  }
  for (std::size_t k = 1; k < table.size(); ++k)
    for (std::size_t i = 0; i < 256; ++i)
      table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 0xFF];
  return table;
}

constexpr Table table = make_table();

/// The register, without inversion before or after.
std::uint32_t advance_by_table(std::uint32_t crc, const std::byte* data, std::size_t size) noexcept {
  for (; size >= 8; size -= 8, data += 8) {
    const std::uint64_t word = word_at(data) ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= table[7 - k][(word >> (8 * k)) & 0xFF];
  }
  for (; size > 0; --size, ++data)
    crc = (crc >> 8) ^ table[0][(crc ^ std::to_integer<std::uint32_t>(*data)) & 0xFF];
  return crc;
}

// ---- zeros appended: multiplication by a power of x modulo the polynomial

/// Product of two polynomials modulo ours; the highest bit is x^0.
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 0x80000000; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b >> 1) ^ (b & 1 ? polynomial : 0);
  }
  return product;
}

/// x^(8 n): multiplying a register by it has the effect of n bytes of zeros.
constexpr std::uint32_t power_of_bytes(std::uint64_t n) noexcept {
  std::uint32_t result = 0x80000000, square = 0x00800000;  // x^0, x^8
  for (; n != 0; n >>= 1) {
    if (n & 1) result = multiply(result, square);
    square = multiply(square, square);
  }
  return result;
}

// ---- by the instruction: its result takes three cycles, so three streams are read in turn

#ifdef OUTCORE_X86

/// Effect of `stream_bytes` zeros on each byte of a register.
using Shift = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr Shift make_shift(std::uint64_t stream_bytes) {
  const std::uint32_t power = power_of_bytes(stream_bytes);
  Shift shift{};
  for (std::uint32_t k = 0; k < 4; ++k) {
    for (std::uint32_t bit = 0; bit < 8; ++bit) {
      const std::uint32_t effect = multiply(power, std::uint32_t{1} << (8 * k + bit));
      for (std::uint32_t i = 0; i < 256; ++i)
        if (i >> bit & 1) shift[k][i] ^= effect;
    }
  }
  return shift;
}

constexpr std::size_t long_stream = 8192, short_stream = 256;
constexpr Shift long_shift = make_shift(long_stream), short_shift = make_shift(short_stream);

std::uint32_t append(const Shift& zeros, std::uint32_t first, std::uint32_t second) noexcept {
  return zeros[0][first & 0xFF] ^ zeros[1][first >> 8 & 0xFF] ^ zeros[2][first >> 16 & 0xFF] ^
         zeros[3][first >> 24] ^ second;
}

template <std::size_t stream>
__attribute__((target("sse4.2"))) std::uint32_t advance_streams(std::uint32_t crc, const std::byte*& data,
                                                                std::size_t& size,
                                                                const Shift& shift) noexcept {
  for (; size >= 3 * stream; size -= 3 * stream, data += 3 * stream) {
    std::uint64_t a = crc, b = 0, c = 0;
    for (std::size_t i = 0; i < stream; i += 8) {
      a = _mm_crc32_u64(a, word_at(data + i));
      b = _mm_crc32_u64(b, word_at(data + stream + i));
      c = _mm_crc32_u64(c, word_at(data + 2 * stream + i));
    }
    crc = append(shift, append(shift, static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b)),
                 static_cast<std::uint32_t>(c));
  }
  return crc;
}

__attribute__((target("sse4.2"))) std::uint32_t advance_by_instruction(std::uint32_t crc,
                                                                       const std::byte* data,
                                                                       std::size_t size) noexcept {
  crc = advance_streams<long_stream>(crc, data, size, long_shift);
  crc = advance_streams<short_stream>(crc, data, size, short_shift);
  for (; size >= 8; size -= 8, data += 8) crc = static_cast<std::uint32_t>(_mm_crc32_u64(crc, word_at(data)));
  for (; size > 0; --size, ++data) crc = _mm_crc32_u8(crc, std::to_integer<unsigned char>(*data));
  return crc;
}

// ---- by multiplication without carries: 256 bytes at a time

/// Two constants that move 16 bytes of a message `distance` bytes on, in 33 bits each, as the reversed bits
/// want it.
constexpr std::uint64_t fold_low(std::uint64_t distance) {
  return std::uint64_t{power_of_bytes(distance + 4)} << 1;
}
constexpr std::uint64_t fold_high(std::uint64_t distance) {
  return std::uint64_t{power_of_bytes(distance - 4)} << 1;
}

constexpr std::size_t folded_bytes = 256;

__attribute__((target("avx512f,vpclmulqdq"))) __m512i folded(__m512i sum, __m512i constants,
                                                             const std::byte* next) noexcept {
  const __m512i low = _mm512_clmulepi64_epi128(sum, constants, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(sum, constants, 0x11);
  constexpr int xor_of_three = 0x96;
  return _mm512_ternarylogic_epi64(low, high, _mm512_loadu_si512(next), xor_of_three);
}

/// Folds the message into its last 256 bytes, which then have the same checksum, and computes that.
__attribute__((target("avx512f,vpclmulqdq,sse4.2"))) std::uint32_t advance_by_folding(
    std::uint32_t crc, const std::byte* data, std::size_t size) noexcept {
  if (size >= 2 * folded_bytes) {
    const auto low = static_cast<long long>(fold_low(folded_bytes));
    const auto high = static_cast<long long>(fold_high(folded_bytes));
    const __m512i constants = _mm512_set4_epi64(high, low, high, low);
    __m512i a = _mm512_loadu_si512(data), b = _mm512_loadu_si512(data + 64);
    __m512i c = _mm512_loadu_si512(data + 128), d = _mm512_loadu_si512(data + 192);
    a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc))));
    data += folded_bytes;
    size -= folded_bytes;
    for (; size >= folded_bytes; size -= folded_bytes, data += folded_bytes) {
      a = folded(a, constants, data);
      b = folded(b, constants, data + 64);
      c = folded(c, constants, data + 128);
      d = folded(d, constants, data + 192);
    }
    alignas(64) std::array<std::byte, folded_bytes> last;
    _mm512_store_si512(last.data(), a);
    _mm512_store_si512(last.data() + 64, b);
    _mm512_store_si512(last.data() + 128, c);
    _mm512_store_si512(last.data() + 192, d);
    crc = advance_by_instruction(0, last.data(), last.size());
  }
  return advance_by_instruction(crc, data, size);
}

#endif

}  // namespace

namespace {

using Advance = std::uint32_t (*)(std::uint32_t crc, const std::byte* data, std::size_t size) noexcept;

struct Implementation {
  const char* name;
  Advance advance;
};

std::vector<Implementation> implementations_here() {
  std::vector<Implementation> implementations{{"table", advance_by_table}};
#ifdef OUTCORE_X86
  if (__builtin_cpu_supports("sse4.2")) {
    implementations.push_back({"sse4.2", advance_by_instruction});
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq"))
      implementations.push_back({"vpclmulqdq", advance_by_folding});
  }
#endif
  return implementations;
}

Advance best_implementation() {
  return implementations_here().back().advance;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  static const Advance advance = best_implementation();
  return ~advance(~before, bytes.data(), bytes.size());
}

std::vector<std::string> crc32c_implementations() {
  std::vector<std::string> names;
  for (const Implementation& implementation : implementations_here()) names.emplace_back(implementation.name);
  return names;
}

std::uint32_t crc32c_by(const std::string& name, std::span<const std::byte> bytes, std::uint32_t before) {
  for (const Implementation& implementation : implementations_here())
    if (implementation.name == name) return ~implementation.advance(~before, bytes.data(), bytes.size());
  throw Error(EINVAL, {.attempted = "checksum by " + name, .detail = "this processor cannot"});
}

std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) noexcept {
  return multiply(power_of_bytes(second_bytes), first) ^ second;
}

}  // namespace outcore::store
