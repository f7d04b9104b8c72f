// The geometry of a component: how its file is divided.
#pragma once

#include <cstddef>
#include <cstdint>

#include "store/codec.hpp"

namespace outcore::store {

/// The file of a component is a row of slots, each for one chunk, at multiples of `stride_bytes`. With
/// `shadow` there are two such rows, the sides: a slot is on one of them, and its next version goes to the
/// other. Within a slot each block has a checksum, so that a part can be verified without the whole.
struct Geometry {
  static constexpr std::int64_t page_bytes = 4096;
  static constexpr std::int64_t max_slot_bytes = max_encoded_bytes;
  static constexpr std::int64_t max_blocks = 1024;  ///< in a slot

  std::int64_t slot_bytes = 0;  ///< of a chunk, 1 .. max_slot_bytes
  std::int64_t slots = 0;
  std::int64_t block_bytes = 128 << 10;  ///< a multiple of page_bytes; at most max_blocks in a slot
  std::uint32_t element_bytes = 8;
  CodecOptions codec{};
  bool shadow = false;

  friend bool operator==(const Geometry&, const Geometry&) = default;

  /// Distance of slots, on disk and in the memory of requests: slot_bytes rounded up to pages.
  [[nodiscard]] std::int64_t stride_bytes() const noexcept {
    return (slot_bytes + page_bytes - 1) / page_bytes * page_bytes;
  }
  [[nodiscard]] std::int64_t blocks() const noexcept { return blocks_in(slot_bytes); }  ///< in a slot
  [[nodiscard]] std::int64_t blocks_in(std::int64_t size_bytes) const noexcept {
    return (size_bytes + block_bytes - 1) / block_bytes;
  }
  [[nodiscard]] std::int64_t sides() const noexcept { return shadow ? 2 : 1; }
  [[nodiscard]] std::int64_t offset_of(std::int64_t slot, int side) const noexcept {
    return (slot + side * slots) * stride_bytes();
  }
  /// Length of the file. It is sparse: slots that were never written take no space.
  [[nodiscard]] std::int64_t file_bytes() const noexcept { return sides() * slots * stride_bytes(); }
};

/// Consecutive slots of one component.
struct SlotRange {
  std::int64_t first_slot = 0, count = 0;

  [[nodiscard]] std::int64_t end() const noexcept { return first_slot + count; }
  friend bool operator==(const SlotRange&, const SlotRange&) = default;
};

/// Size of the blocks of a chunk: an eighth of the chunk, so that a row of a chunk can be read and verified
/// without the rest; but not so small that a disk would not read less any faster, nor above 128 KiB.
[[nodiscard]] std::int64_t suitable_block_bytes(std::int64_t slot_bytes) noexcept;

/// Throws Error(EINVAL) for numbers outside the ranges above, and if a file would be larger than 2^62.
void check(const Geometry& geometry);

}  // namespace outcore::store
