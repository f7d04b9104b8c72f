#include "store/fixed_point.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "outcore/error.hpp"
#include "store/block_float.hpp"

namespace outcore::store {
namespace {

constexpr int mantissa_bits = 52, bias = 1075;  // a number is its mantissa times 2^(exponent - bias)
constexpr int smallest = -1000;                 // power: half of it, too, is a normal number
constexpr std::uint64_t sign = std::uint64_t{1} << 63, exponents = 0x7ff;

/// The largest power of two such that all numbers are whole multiples of it. `smallest` - 1: there is none.
int common_power(std::span<const double> numbers) noexcept {
  int found = std::numeric_limits<int>::max();
  bool good = true;
  for (const double each : numbers) {
    const auto bits = std::bit_cast<std::uint64_t>(each);
    if (bits == 0) continue;
    const std::uint64_t exponent = bits >> mantissa_bits & exponents;
    good = good && exponent != 0 && exponent != exponents;  // also of a zero with a sign
    const std::uint64_t mantissa = bits | std::uint64_t{1} << mantissa_bits;
    found = std::min(found, static_cast<int>(exponent) + std::countr_zero(mantissa));
  }
  if (found == std::numeric_limits<int>::max()) return good ? 0 : smallest - 1;
  return good ? std::max(found - bias, smallest - 1) : smallest - 1;
}

std::span<const double> as_numbers(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const double*>(bytes.data()), bytes.size() / sizeof(double)};
}

}  // namespace

std::size_t encode_fixed_point(std::span<const std::byte> from, std::span<std::byte> to) {
  if (from.size() % sizeof(double) != 0) return 0;
  const auto numbers = as_numbers(from);
  const int power = common_power(numbers);
  if (power < smallest) return 0;
  thread_local std::vector<std::byte> packed;
  packed.resize(sizeof(double) + max_packed_bytes(numbers.size()));
  const double step = std::ldexp(1.0, power);
  std::memcpy(packed.data(), &step, sizeof step);
  const std::size_t size = sizeof step + pack(numbers, step / 2, packed.data() + sizeof step);
  if (size > to.size()) return 0;
  std::copy_n(packed.begin(), size, to.begin());
  return size;
}

void decode_fixed_point(std::span<const std::byte> from, std::span<std::byte> to) {
  double step = 0;
  if (from.size() >= sizeof step) std::memcpy(&step, from.data(), sizeof step);
  const auto bits = std::bit_cast<std::uint64_t>(step);
  const bool is_power = (bits & ((std::uint64_t{1} << mantissa_bits) - 1)) == 0 && (bits & sign) == 0 &&
                        std::isnormal(step) && std::isnormal(step / 2);
  if (!is_power || to.size() % sizeof(double) != 0)
    throw Error(EIO,
                {.attempted = "decompression", .detail = "it was not compressed as fixed-point numbers"});
  unpack(from.subspan(sizeof step), step / 2,
         {reinterpret_cast<double*>(to.data()), to.size() / sizeof(double)});
}

}  // namespace outcore::store
