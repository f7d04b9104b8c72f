#include "file/record_space.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace outcore::file {

// Classes 0 to 7 hold 1 to 8 granules; then each group of eight holds 9 to 16 times a power of two.

int record_class::of(std::int64_t granules) noexcept {
  if (granules <= 8) return static_cast<int>(std::max<std::int64_t>(granules, 1)) - 1;
  const int shift = std::bit_width(static_cast<std::uint64_t>(granules - 1)) - 4;
  const auto eighth = static_cast<int>(((granules - 1) >> shift) + 1 - 9);
  return 8 + 8 * shift + eighth;
}

std::int64_t record_class::granules(int size_class) noexcept {
  if (size_class < 8) return size_class + 1;
  return static_cast<std::int64_t>(9 + (size_class - 8) % 8) << (size_class - 8) / 8;
}

RecordSpace::RecordSpace(std::int64_t extent_granules, TakeExtent take_extent)
    : extent_granules_(extent_granules), take_extent_(std::move(take_extent)) {}

RecordSpace::Allocation RecordSpace::take(std::int64_t size_bytes) {
  const int size_class = record_class::of((size_bytes + granule_bytes - 1) / granule_bytes);
  const std::int64_t count = record_class::granules(size_class);
  const std::lock_guard guard(mutex_);
  auto best = gaps_by_size_.lower_bound({count, 0});
  if (best == gaps_by_size_.end()) {
    const std::int64_t extent = std::max(extent_granules_, count);
    insert(take_extent_(extent), extent);
    best = gaps_by_size_.lower_bound({count, 0});
  }
  const auto [gap_count, granule] = *best;
  erase(gaps_.find(granule));
  if (gap_count > count) insert(granule + count, gap_count - count);
  return {granule, size_class};
}

void RecordSpace::give(const Allocation& allocation) {
  const std::lock_guard guard(mutex_);
  insert(allocation.granule, record_class::granules(allocation.size_class));
}

std::int64_t RecordSpace::free_bytes() const {
  const std::lock_guard guard(mutex_);
  std::int64_t count = 0;
  for (const auto& [granule, size] : gaps_) count += size;
  return count * granule_bytes;
}

/// Joined with the gaps on both sides.
void RecordSpace::insert(std::int64_t granule, std::int64_t count) {
  auto next = gaps_.lower_bound(granule);
  if (next != gaps_.end() && granule + count == next->first) {
    count += next->second;
    erase(next++);
  }
  if (next != gaps_.begin())
    if (const auto before = std::prev(next); before->first + before->second == granule) {
      granule = before->first;
      count += before->second;
      erase(before);
    }
  gaps_.emplace(granule, count);
  gaps_by_size_.emplace(count, granule);
}

void RecordSpace::erase(std::map<std::int64_t, std::int64_t>::iterator gap) {
  gaps_by_size_.erase({gap->second, gap->first});
  gaps_.erase(gap);
}

}  // namespace outcore::file
