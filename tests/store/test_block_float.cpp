// Packed numbers: errors stay within their bound, and bytes that are no packed numbers are refused.
#include <array>
#include <cerrno>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "outcore/error.hpp"
#include "store/block_float.hpp"
#include "support/check.hpp"

namespace {

using namespace outcore;

std::vector<std::byte> packed(const std::vector<double>& numbers, double error) {
  std::vector<std::byte> bytes(store::max_packed_bytes(numbers.size()));
  bytes.resize(store::pack(numbers, error, bytes.data()));
  return bytes;
}

std::vector<double> unpacked(std::span<const std::byte> bytes, double error, std::size_t count) {
  std::vector<double> numbers(count, -1e99);
  store::unpack(bytes, error, numbers);
  return numbers;
}

std::vector<double> round_trip(const std::vector<double>& numbers, double error) {
  return unpacked(packed(numbers, error), error, numbers.size());
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

std::vector<double> uniform(std::size_t count, double size, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> from(-size, size);
  std::vector<double> numbers(count);
  for (double& each : numbers) each = from(random);
  return numbers;
}

}  // namespace

TEST("errors stay within their bound, whatever the sizes of numbers") {
  std::mt19937_64 random(5);
  for (const double error : {1e-3, 1e-6, 1e-9, 1e-12, 1e-15})
    for (int turn = 0; turn < 200; ++turn) {
      std::vector<double> numbers(random() % 300);
      for (double& each : numbers)
        each = std::ldexp(double(std::int64_t(random() >> 11)) - 0x1p52, int(random() % 120) - 110);
      const auto found = round_trip(numbers, error);
      for (std::size_t i = 0; i < numbers.size(); ++i)
        check::is_true(std::abs(found[i] - numbers[i]) <= error + 4e-16 * std::abs(numbers[i]));
    }
}

TEST("without an error numbers come back as they are") {
  auto numbers = uniform(1000, 1.0, 1);
  numbers[17] = -0.0;
  numbers[18] = 5e-324;
  check::is_true(same_bits(round_trip(numbers, 0), numbers));
}

TEST("what is no number, and what is too large for the step, comes back as it is") {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  for (const double odd : {infinite, -infinite, std::nan(""), 1e300}) {
    auto numbers = uniform(64, 1.0, 2);
    numbers[40] = odd;
    check::is_true(same_bits(round_trip(numbers, 1e-6), numbers));
  }
}

TEST("what was unpacked is packed again without a further error") {
  const auto once = round_trip(uniform(1000, 1e-3, 3), 1e-7);
  check::is_true(same_bits(round_trip(once, 1e-7), once));
}

TEST("small numbers take few bits, zeros a byte of 64") {
  check::is_true(packed(uniform(6400, 1e-5, 4), 1e-8).size() * 8 < 6400 * 10.2);  // 2e-5 / 2e-8 < 2^10
  check::equal(packed(std::vector<double>(6400), 1e-8).size(), 100);
}

TEST("no more bytes are written than are said to be needed") {
  for (std::size_t count = 0; count < 300; ++count) {
    std::vector<std::byte> bytes(store::max_packed_bytes(count) + 8, std::byte{0x5A});
    const auto size = store::pack(uniform(count, 1e3, unsigned(count)), 1e-12, bytes.data());
    check::is_true(size <= store::max_packed_bytes(count));
    for (std::size_t i = store::max_packed_bytes(count); i < bytes.size(); ++i)
      check::is_true(bytes[i] == std::byte{0x5A});
  }
}

TEST("bytes that are cut, added to, or begin a block of a size that is not possible are refused") {
  const auto numbers = uniform(1000, 1.0, 6);
  auto good = packed(numbers, 1e-8);
  const auto refused = [&](std::span<const std::byte> bytes, std::size_t count) {
    const auto error = check::throws<Error>([&] { (void)unpacked(bytes, 1e-8, count); });
    check::equal(error.errno_value(), EIO);
    check::contains(error.what(), "damaged");
  };
  refused(std::span(good).first(good.size() - 1), 1000);
  refused({}, 1000);
  refused(good, 1001);
  refused(good, 936);
  good.push_back(std::byte{0});
  refused(good, 1000);
  good.pop_back();
  good[0] = std::byte{63};
  refused(good, 1000);
}

TEST("of any bytes, nothing beyond their end is read") {
  std::mt19937_64 random(7);
  int taken = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    std::vector<std::byte> bytes(random() % 40);
    for (std::byte& each : bytes) each = std::byte(random() % 256);
    if (!bytes.empty()) bytes[0] = std::byte(random() % 66);
    bytes.shrink_to_fit();  // for the sanitizer to see the end
    try {
      (void)unpacked(bytes, 1e-3, 1 + random() % 70);
      ++taken;
    } catch (const Error& error) {
      check::equal(error.errno_value(), EIO);
    }
  }
  check::is_true(taken > 0 && taken < 10'000);
}

TEST_MAIN
