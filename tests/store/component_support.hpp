// Components with contents to compare, for tests.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <vector>

#include "device/buffer.hpp"
#include "device/support.hpp"
#include "outcore/error.hpp"
#include "store/component.hpp"
#include "support/check.hpp"

namespace component_support {

using namespace outcore::store;
using outcore::device::Buffer;

inline const std::vector<CodecOptions> codecs{{}, blosc2_for(8), blosc2_for(8, Compressor::lz4, 5)};

/// Slots whose size is a multiple of neither pages nor blocks.
inline Geometry odd(const CodecOptions& codec = {}, bool shadow = false) {
  return {.slot_bytes = 30'000,
          .slots = 40,
          .block_bytes = 8192,
          .element_bytes = 8,
          .codec = codec,
          .shadow = shadow};
}

/// Memory of `count` slots: numbers that can be compressed, and noise in some slots.
inline Buffer content(const Geometry& geometry, std::int64_t count, std::uint64_t seed,
                      unsigned noise_in = 3) {
  Buffer buffer(static_cast<std::size_t>(count * geometry.stride_bytes()));
  std::mt19937_64 random(seed);
  for (std::int64_t slot = 0; slot < count; ++slot) {
    const bool noise = noise_in > 0 && random() % noise_in == 0;
    auto* words = reinterpret_cast<std::uint64_t*>(buffer.data() + slot * geometry.stride_bytes());
    for (std::int64_t i = 0; i < geometry.stride_bytes() / 8; ++i)
      words[i] = noise ? random() : seed * 1000 + static_cast<std::uint64_t>(slot + i / 7);
  }
  return buffer;
}

/// The part of slot `slot` in such memory that is used.
inline std::span<std::byte> slot_in(const Geometry& geometry, const Buffer& buffer, std::int64_t slot) {
  return buffer.span().subspan(static_cast<std::size_t>(slot * geometry.stride_bytes()),
                               static_cast<std::size_t>(geometry.slot_bytes));
}

inline void same_slots(const Geometry& geometry, const Buffer& actual, const Buffer& expected,
                       std::source_location at = std::source_location::current()) {
  check::equal(actual.size(), expected.size(), at);
  for (std::int64_t slot = 0; slot * geometry.stride_bytes() < static_cast<std::int64_t>(actual.size());
       ++slot)
    support::same(slot_in(geometry, actual, slot), slot_in(geometry, expected, slot), at);
}

inline void write(Component& component, std::int64_t first, const Buffer& data) {
  const auto count = static_cast<std::int64_t>(data.size()) / component.geometry().stride_bytes();
  component.write_async(first, count, data.span()).wait();
}

inline Buffer read(const Component& component, std::int64_t first, std::int64_t count) {
  Buffer buffer(static_cast<std::size_t>(count * component.geometry().stride_bytes()));
  std::ranges::fill(buffer.span(), std::byte{0xAA});
  component.read_async(first, count, buffer.span()).wait();
  return buffer;
}

/// The error that reading slots gives.
inline outcore::Error read_error(const Component& component, std::int64_t first, std::int64_t count = 1,
                                 std::source_location at = std::source_location::current()) {
  return check::throws<outcore::Error>([&] { static_cast<void>(read(component, first, count)); }, at);
}

inline void flip_bit(const std::string& path, std::int64_t offset) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  char byte = 0;
  check::equal(pread(fd, &byte, 1, offset), 1);
  byte = static_cast<char>(byte ^ 0x10);
  check::equal(pwrite(fd, &byte, 1, offset), 1);
  close(fd);
}

}  // namespace component_support
