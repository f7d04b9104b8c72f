// The memory of all processes as one row of bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "outcore/extend/transport.hpp"
#include "outcore/world.hpp"

namespace outcore::file {

/// A part of equal size in each process, one behind the other, initially zero. Any thread of any process
/// reads and writes any bytes. All processes see a put after World::flush. No process may put bytes that
/// another one gets at the same time.
class SharedBytes {
 public:
  /// Collective, with the same size at all processes. Throws Error(ENOMEM) if a budget does not allow it.
  SharedBytes(World& world, std::int64_t part_bytes, std::string_view what)
      : part_bytes_(part_bytes),
        size_bytes_(part_bytes * world.size()),
        region_(world.allocate(part_bytes, what)) {}

  [[nodiscard]] std::int64_t size_bytes() const noexcept { return size_bytes_; }

  void get(std::int64_t begin, std::span<std::byte> to) const {
    each_part(begin, to, [](transport::Segment& segment, const transport::StridedTransfer& part) {
      if (const std::byte* direct = segment.direct(part.process))
        std::memcpy(part.memory, direct + part.offset, static_cast<std::size_t>(part.count[0]));
      else
        segment.get(part).wait();
    });
  }
  void put(std::int64_t begin, std::span<const std::byte> from) {
    const std::span bytes(const_cast<std::byte*>(from.data()), from.size());  // a put only reads from it
    each_part(begin, bytes, [](transport::Segment& segment, const transport::StridedTransfer& part) {
      if (std::byte* direct = segment.direct(part.process))
        std::memcpy(direct + part.offset, part.memory, static_cast<std::size_t>(part.count[0]));
      else
        segment.put(part).wait();
    });
  }
  void release() noexcept { region_ = {}; }  ///< frees the memory of this process; no call may follow

 private:
  template <class Move>
  void each_part(std::int64_t begin, std::span<std::byte> memory, const Move& move) const {
    const World::Region::Use use = region_.use();
    while (!memory.empty()) {
      const std::int64_t process = begin / part_bytes_, offset = begin % part_bytes_;
      const std::int64_t count = std::min(part_bytes_ - offset, std::ssize(memory));
      move(*use.operator->(), transport::StridedTransfer{.process = static_cast<int>(process),
                                                         .offset = region_.offset() + offset,
                                                         .stride_bytes = Extents{1},
                                                         .memory = memory.data(),
                                                         .memory_stride_bytes = Extents{1},
                                                         .count = Extents{count},
                                                         .type = ElementType::uint8});
      begin += count;
      memory = memory.subspan(static_cast<std::size_t>(count));
    }
  }

  std::int64_t part_bytes_, size_bytes_;
  World::Region region_;
};

}  // namespace outcore::file
