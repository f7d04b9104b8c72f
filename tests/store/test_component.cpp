// Components: what is written is read, or damage is named; committed content survives everything.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <random>

#include "check.hpp"
#include "device/support.hpp"
#include "outcore/device/buffer.hpp"
#include "outcore/device/fault.hpp"
#include "outcore/error.hpp"
#include "outcore/store/component.hpp"

using namespace outcore;
using namespace outcore::store;
using device::Buffer;
using support::Scratch;

namespace {

/// Slots of a size that is no multiple of pages nor blocks.
Geometry odd(CodecOptions codec = {}, bool shadow = false) {
  return {.slot_bytes = 30'000,
          .slots = 40,
          .block_bytes = 8192,
          .element_bytes = 8,
          .codec = codec,
          .shadow = shadow};
}

/// Memory of `count` slots with numbers that compress, some slots with ones that do not.
Buffer content(const Geometry& geometry, std::int64_t count, unsigned seed) {
  Buffer buffer(static_cast<std::size_t>(count * geometry.stride_bytes()));
  std::mt19937_64 random(seed);
  for (std::int64_t slot = 0; slot < count; ++slot) {
    const bool noise = random() % 3 == 0;
    auto* words = reinterpret_cast<std::uint64_t*>(buffer.data() + slot * geometry.stride_bytes());
    for (std::int64_t i = 0; i < geometry.stride_bytes() / 8; ++i)
      words[i] = noise ? random() : seed * 1000 + static_cast<unsigned>(i) / 7;
  }
  return buffer;
}

void same_slots(const Geometry& geometry, const Buffer& actual, const Buffer& expected,
                std::source_location at = std::source_location::current()) {
  check::equal(actual.size(), expected.size(), at);
  for (std::size_t i = 0; i < actual.size(); i += static_cast<std::size_t>(geometry.stride_bytes()))
    support::same(actual.span().subspan(i, static_cast<std::size_t>(geometry.slot_bytes)),
                  expected.span().subspan(i, static_cast<std::size_t>(geometry.slot_bytes)), at);
}

Buffer read(const Component& component, std::int64_t first, std::int64_t count) {
  Buffer buffer(static_cast<std::size_t>(count * component.geometry().stride_bytes()));
  std::ranges::fill(buffer.span(), std::byte{0xAA});
  component.async_read(first, count, buffer.span()).wait();
  return buffer;
}

const std::vector<CodecOptions> codecs{{}, blosc2_for(8), blosc2_for(8, Compressor::lz4, 5)};

}  // namespace

TEST("what is written is read, with every codec, with and without shadow") {
  for (const CodecOptions& codec : codecs) {
    for (const bool shadow : {false, true}) {
      const Scratch scratch;
      const Geometry geometry = odd(codec, shadow);
      Component component = Component::create(scratch.file(), geometry);
      const Buffer data = content(geometry, 40, 1);
      component.async_write(0, 40, data.span()).wait();
      same_slots(geometry, read(component, 0, 40), data);
    }
  }
}

TEST("slots that were never written read as zeros") {
  const Scratch scratch;
  Component component = Component::create(scratch.file(), odd());
  for (const std::byte each : read(component, 3, 7).span()) check::is_true(each == std::byte{0});
}

TEST("an existing file is reopened with its table") {
  for (const CodecOptions& codec : codecs) {
    const Scratch scratch;
    const Geometry geometry = odd(codec, true);
    const Buffer data = content(geometry, 10, 2);
    std::vector<std::byte> table;
    {
      Component component = Component::create(scratch.file(), geometry);
      component.async_write(5, 10, data.span()).wait();
      component.flush();
      table = component.encode_table();
      component.close();
    }
    Component component =
        Component::open(scratch.file(), SlotTable::decode(table, "table"), {.read_only = true});
    check::is_true(component.geometry() == geometry);
    same_slots(geometry, read(component, 5, 10), data);
    check::is_true(!component.table().written(4) && !component.table().written(15));
  }
}

TEST_MAIN
