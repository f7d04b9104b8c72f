#include "store/block_float.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "outcore/error.hpp"

namespace outcore::store {
namespace {

constexpr std::size_t block = 64;
constexpr unsigned raw = 64, max_bits = 52;  // bits of a number in a block
constexpr std::size_t word = sizeof(std::uint64_t);
constexpr double rounds = 0x1.8p52;  // x + rounds has the nearest whole number to x in its lower bits
static_assert(std::endian::native == std::endian::little);

/// Bits of numbers from -m to m, as differences from -2^(bits - 1).
unsigned bits_of(std::uint64_t m) noexcept {
  return m == 0 ? 0 : unsigned(std::bit_width(2 * m));
}

std::int64_t whole(double scaled) noexcept {
  return std::bit_cast<std::int64_t>(scaled + rounds) - std::bit_cast<std::int64_t>(rounds);
}

/// Writes up to a word beyond the end.
std::byte* put_bits(std::span<const std::uint64_t> values, unsigned bits, std::byte* to) noexcept {
  std::uint64_t held = 0;
  unsigned count = 0;
  for (std::uint64_t each : values) {
    held |= each << count;
    count += bits;
    std::memcpy(to, &held, word);
    to += count / 8;
    held >>= count & ~7U;
    count &= 7;
  }
  if (count > 0) *to++ = std::byte(std::uint8_t(held));
  return to;
}

}  // namespace

std::size_t max_packed_bytes(std::size_t count) noexcept {
  return count * sizeof(double) + (count + block - 1) / block + word;
}

std::size_t pack(std::span<const double> numbers, double error, std::byte* packed) noexcept {
  std::byte* to = packed;
  const double steps = error > 0 ? 0.5 / error : 0;
  std::array<std::uint64_t, block> values{};
  for (std::size_t begin = 0; begin < numbers.size(); begin += block) {
    const std::size_t count = std::min(block, numbers.size() - begin);
    double largest = 0;
    bool finite = steps > 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double size = std::abs(numbers[begin + i]);
      finite = finite && std::isfinite(size);
      largest = std::max(largest, size);
    }
    if (!finite || !(largest * steps < double(std::uint64_t{1} << (max_bits - 2)))) {
      *to++ = std::byte(raw);
      std::memcpy(to, numbers.data() + begin, count * sizeof(double));
      to += count * sizeof(double);
      continue;
    }
    const unsigned bits = bits_of(std::uint64_t(whole(largest * steps)));
    *to++ = std::byte(bits);
    if (bits == 0) continue;
    const std::int64_t middle = std::int64_t{1} << (bits - 1);
    for (std::size_t i = 0; i < count; ++i)
      values[i] = std::uint64_t(whole(numbers[begin + i] * steps) + middle);
    to = put_bits({values.data(), count}, bits, to);
  }
  return std::size_t(to - packed);
}

void unpack(std::span<const std::byte> packed, double error, std::span<double> numbers) {
  const auto check = [](bool good) {
    if (!good) throw Error(EIO, {.attempted = "unpack numbers", .detail = "they are damaged"});
  };
  const double step = 2 * error;
  std::size_t at = 0;
  for (std::size_t begin = 0; begin < numbers.size(); begin += block) {
    const std::size_t count = std::min(block, numbers.size() - begin);
    check(at < packed.size());
    const auto bits = unsigned(packed[at++]);
    check(bits <= max_bits || bits == raw);
    const std::size_t bytes = (count * bits + 7) / 8;
    check(bytes <= packed.size() - at);
    if (bits == raw) {
      std::memcpy(numbers.data() + begin, packed.data() + at, bytes);
    } else if (bits == 0) {
      std::fill_n(numbers.begin() + std::ptrdiff_t(begin), count, 0.0);
    } else {
      const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
      const std::int64_t middle = std::int64_t{1} << (bits - 1);
      // A whole word is read for each number; for the last ones from a copy.
      const std::byte* from = packed.data() + at;
      std::array<std::byte, block * word> copy;
      if (packed.size() - at < bytes + word) {
        std::memcpy(copy.data(), from, bytes);
        from = copy.data();
      }
      for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t held;
        std::memcpy(&held, from + i * bits / 8, word);
        numbers[begin + i] = double(std::int64_t(held >> (i * bits % 8) & mask) - middle) * step;
      }
    }
    at += bytes;
  }
  check(at == packed.size());
}

}  // namespace outcore::store
