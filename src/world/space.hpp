// The places of regions in segments. It knows no memory or processes: the same calls give the same
// allocations, so all processes agree without communication.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/gaps.hpp"

namespace outcore::world {

struct Allocation {
  int segment = 0;
  std::int64_t offset = 0, size_bytes = 0;  ///< the size taken, which is that asked for rounded up
  friend bool operator==(const Allocation&, const Allocation&) = default;
};

class SegmentSpace {
 public:
  static constexpr std::int64_t alignment = 64;
  static constexpr std::int64_t page =
      4096;  ///< larger regions begin and end at pages, to be cleared by pages
  static constexpr std::int64_t large_page = 2 << 20;  ///< regions as large as this begin at multiples of it

  [[nodiscard]] static std::int64_t rounded(std::int64_t size_bytes);
  [[nodiscard]] static std::int64_t whole_large_pages(std::int64_t size_bytes);

  void add(int segment, std::int64_t size_bytes);
  void remove(int segment);
  [[nodiscard]] std::optional<Allocation> take(
      std::int64_t size_bytes);  ///< the first gap that fits; null: none does
  void give(const Allocation& allocation);
  [[nodiscard]] bool unused(int segment) const;

 private:
  struct Segment {
    std::int64_t size_bytes = 0;
    Gaps free;  // bytes
  };
  std::map<int, Segment> segments_;
};

}  // namespace outcore::world
