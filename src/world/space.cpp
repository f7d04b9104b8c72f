#include "world/space.hpp"

#include <algorithm>

namespace outcore::world {
namespace {

constexpr std::int64_t by_pages_bytes = 64 << 10;

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

/// The alignment of a region of a (rounded) size.
std::int64_t step_of(std::int64_t size_bytes) {
  if (size_bytes >= SegmentSpace::large_page) return SegmentSpace::large_page;
  return size_bytes >= by_pages_bytes ? SegmentSpace::page : SegmentSpace::alignment;
}

}  // namespace

std::int64_t SegmentSpace::whole_large_pages(std::int64_t size_bytes) {
  return round_up(size_bytes, large_page);
}

std::int64_t SegmentSpace::rounded(std::int64_t size_bytes) {
  const std::int64_t least = std::max<std::int64_t>(size_bytes, 1);
  return round_up(least, least >= by_pages_bytes ? page : alignment);
}

void SegmentSpace::add(int segment, std::int64_t size_bytes) {
  Segment& its = segments_[segment];
  its.size_bytes = size_bytes;
  its.free.give(0, size_bytes);
}

void SegmentSpace::remove(int segment) {
  segments_.erase(segment);
}

std::optional<Allocation> SegmentSpace::take(std::int64_t size_bytes) {
  const std::int64_t size = rounded(size_bytes);
  for (auto& [number, segment] : segments_)
    if (const auto offset = segment.free.take_lowest(size, step_of(size)))
      return Allocation{number, *offset, size};
  return std::nullopt;
}

void SegmentSpace::give(const Allocation& allocation) {
  segments_.at(allocation.segment).free.give(allocation.offset, allocation.size_bytes);
}

bool SegmentSpace::unused(int segment) const {
  const Segment& its = segments_.at(segment);
  return its.free.total() == its.size_bytes;
}

}  // namespace outcore::world
