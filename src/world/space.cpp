#include "world/space.hpp"

#include <algorithm>
#include <cassert>

namespace outcore::world {
namespace {

constexpr std::int64_t by_pages_bytes = 64 << 10;

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

/// Where a region of a size, rounded, may begin.
std::int64_t step_of(std::int64_t size_bytes) {
  if (size_bytes >= Space::large_page) return Space::large_page;
  return size_bytes >= by_pages_bytes ? Space::page : Space::alignment;
}

}  // namespace

std::int64_t Space::whole_large_pages(std::int64_t size_bytes) {
  return round_up(size_bytes, large_page);
}

std::int64_t Space::rounded(std::int64_t size_bytes) {
  const std::int64_t least = std::max<std::int64_t>(size_bytes, 1);
  return round_up(least, least >= by_pages_bytes ? page : alignment);
}

void Space::add(int segment, std::int64_t size_bytes) {
  segments_[segment] = {size_bytes, {{0, size_bytes}}};
}

void Space::remove(int segment) {
  segments_.erase(segment);
}

std::optional<Allocation> Space::take(std::int64_t size_bytes) {
  const std::int64_t size = rounded(size_bytes);
  const std::int64_t step = step_of(size);
  for (auto& [number, segment] : segments_)
    for (auto gap = segment.free.begin(); gap != segment.free.end(); ++gap) {
      const auto [offset, gap_bytes] = *gap;
      const std::int64_t first = round_up(offset, step);
      if (first + size > offset + gap_bytes) continue;
      segment.free.erase(gap);
      if (first > offset) segment.free[offset] = first - offset;
      if (first + size < offset + gap_bytes) segment.free[first + size] = offset + gap_bytes - first - size;
      return Allocation{number, first, size};
    }
  return std::nullopt;
}

void Space::give(const Allocation& allocation) {
  auto& free = segments_.at(allocation.segment).free;
  auto [gap, added] = free.emplace(allocation.offset, allocation.size_bytes);
  assert(added);
  if (const auto next = std::next(gap); next != free.end() && gap->first + gap->second == next->first) {
    gap->second += next->second;
    free.erase(next);
  }
  if (gap != free.begin())
    if (const auto before = std::prev(gap); before->first + before->second == gap->first) {
      before->second += gap->second;
      free.erase(gap);
    }
}

bool Space::unused(int segment) const {
  const Segment& its = segments_.at(segment);
  return its.free.size() == 1 && its.free.begin()->second == its.size_bytes;
}

}  // namespace outcore::world
