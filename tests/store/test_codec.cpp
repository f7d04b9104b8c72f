// Codecs: decompression returns the data, and data that does not shrink is reported.
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "outcore/error.hpp"
#include "store/codec.hpp"
#include "support/check.hpp"

using namespace outcore;
using namespace outcore::store;

namespace {

using Bytes = std::vector<std::byte>;

/// A smooth function in doubles, cut to the size.
Bytes smooth(std::size_t size) {
  std::vector<double> values(size / 8 + 1);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0 + 1e-3 * static_cast<double>(i / 16);
  Bytes bytes(size);
  std::memcpy(bytes.data(), values.data(), size);
  return bytes;
}

Bytes noise(std::size_t size) {
  std::mt19937_64 random(1);
  Bytes bytes(size);
  for (std::byte& each : bytes) each = std::byte(random() >> 56);
  return bytes;
}

void comes_back(const CodecOptions& options, std::size_t element, const Bytes& content) {
  Bytes encoded(content.size()), back(content.size());
  const std::size_t size = encode(options, element, content, encoded);
  check::is_true(size > 0 && size < content.size(), "it shrinks");
  encoded.resize(size);
  decode(options, element, encoded, back);
  check::is_true(back == content);
}

}  // namespace

TEST("what is compressed comes back, for all compressors, filters, levels and sizes of elements") {
  for (const Compressor compressor : {Compressor::lz4, Compressor::zstd})
    for (const Filter filter : {Filter::none, Filter::shuffle, Filter::bitshuffle})
      for (const std::uint8_t level : {1, 5, 9})
        for (const std::size_t element : {1, 2, 4, 8, 16, 1000})
          for (const std::size_t size : {1000, 50'007})
            comes_back({Codec::blosc2, compressor, filter, level}, element, smooth(size));
}

TEST("zeros take next to nothing") {
  Bytes encoded(1 << 20);
  check::is_true(encode(blosc2_for(8), 8, Bytes(1 << 20), encoded) < 100);
}

TEST("numbers that were rounded come back bit by bit, in about the bits that they need") {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (const int power : {-40, 0, 30})
    for (const std::size_t count : {1UL, 63UL, 64UL, 16'384UL}) {
      std::vector<double> numbers(count);
      for (double& each : numbers) each = std::ldexp(std::nearbyint(100 * normal(random)) + 0.0, power) + 0.0;
      if (count > 1) numbers[1] = 0;
      const Bytes content(std::as_bytes(std::span(numbers)).begin(), std::as_bytes(std::span(numbers)).end());
      Bytes encoded(content.size() + 64), back(content.size());
      encoded.resize(encode({.codec = Codec::fixed_point}, 8, content, encoded));
      check::is_true(!encoded.empty() && encoded.size() < 20 + count * 11 / 8);
      decode({.codec = Codec::fixed_point}, 8, encoded, back);
      check::is_true(back == content);
    }
  check::equal(text({.codec = Codec::fixed_point}), "fixed-point");
}

TEST("numbers that were not rounded, or are none, do not shrink as fixed-point ones") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const double odd : {inf, -inf, nan, -0.0, 4e-320, 1e-305, std::ldexp(1.0, -1001)}) {
    std::vector<double> numbers(4096, 0.25);
    numbers[77] = odd;
    Bytes encoded(8 * numbers.size());
    check::equal(encode({.codec = Codec::fixed_point}, 8, std::as_bytes(std::span(numbers)), encoded), 0U);
  }
  Bytes encoded(131'072);
  check::equal(encode({.codec = Codec::fixed_point}, 8, noise(131'072), encoded), 0U);
  check::equal(encode({.codec = Codec::fixed_point}, 8, smooth(1001), encoded), 0U);
  check::equal(encode({.codec = Codec::fixed_point}, 8, Bytes(8000), std::span(encoded).first(20)), 0U);
}

TEST("a number that is far larger than the others comes back, too") {
  std::vector<double> numbers(256, 0.5);
  numbers[100] = 1e300;
  const Bytes content(std::as_bytes(std::span(numbers)).begin(), std::as_bytes(std::span(numbers)).end());
  Bytes encoded(content.size()), back(content.size());
  encoded.resize(encode({.codec = Codec::fixed_point}, 8, content, encoded));
  check::is_true(!encoded.empty());
  decode({.codec = Codec::fixed_point}, 8, encoded, back);
  check::is_true(back == content);
}

TEST("what does not shrink says so") {
  const Bytes content = noise(131072);
  Bytes encoded(content.size() - 4096);
  check::equal(encode(blosc2_for(8), 8, content, encoded), 0U);
  check::equal(encode(blosc2_for(8), 8, content, std::span(encoded).first(10)), 0U);
  check::equal(encode(blosc2_for(8), 8, content, {}), 0U);
}

TEST("the filter follows the size of the elements") {
  check::is_true(blosc2_for(8).filter == Filter::shuffle);
  check::is_true(blosc2_for(1).filter == Filter::bitshuffle);
  check::equal(text(blosc2_for(8)), "blosc2 (zstd 1, shuffle)");
  check::equal(text({}), "none");
}

TEST("what was compressed otherwise, or has another size, is refused") {
  const Bytes content = smooth(100'000);
  Bytes encoded(content.size()), back(content.size());
  encoded.resize(encode(blosc2_for(8), 8, content, encoded));
  const auto refuses = [&](const CodecOptions& options, std::size_t element, std::span<const std::byte> from,
                           std::span<std::byte> to) {
    check::equal(check::throws<Error>([&] { decode(options, element, from, to); }).errno_value(), EIO);
  };
  refuses(blosc2_for(8, Compressor::lz4), 8, encoded, back);
  refuses(blosc2_for(1), 8, encoded, back);
  refuses(blosc2_for(8), 4, encoded, back);
  refuses(blosc2_for(8), 8, std::span(encoded).first(encoded.size() - 1), back);
  refuses(blosc2_for(8), 8, encoded, std::span(back).first(back.size() - 8));
  refuses(blosc2_for(8), 8, {}, back);
}

TEST("levels and numbers that are none are refused") {
  check::equal(check::throws<Error>([] { (void)blosc2_for(8, Compressor::zstd, 0); }).errno_value(), EINVAL);
  check::equal(check::throws<Error>([] { (void)blosc2_for(8, Compressor::zstd, 10); }).errno_value(), EINVAL);
  check::equal(check::throws<Error>([] { store::check({.codec = Codec{3}}); }).errno_value(), EINVAL);
  check::equal(check::throws<Error>([] { (void)blosc2_for(8, Compressor{9}); }).errno_value(), EINVAL);
}

TEST("threads compress at the same time, with other options each") {
  std::vector<std::thread> threads;
  std::vector<int> failed(4);
  for (std::size_t t = 0; t < failed.size(); ++t)
    threads.emplace_back([&failed, t] {
      try {
        for (int i = 0; i < 20; ++i) {
          comes_back(blosc2_for(8, t % 2 ? Compressor::lz4 : Compressor::zstd, static_cast<int>(1 + t)), 8,
                     smooth(50'000 + 1000 * t));
          comes_back(blosc2_for(4), 4, smooth(20'000));
        }
      } catch (const std::exception&) {
        failed[t] = 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const int each : failed) check::equal(each, 0);
}

TEST_MAIN
