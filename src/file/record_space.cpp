#include "file/record_space.hpp"

#include <algorithm>
#include <bit>
#include <utility>

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

RecordSpace::RecordSpace(std::int64_t granule_bytes, std::int64_t extent_granules, TakeExtent take_extent)
    : granule_bytes_(granule_bytes),
      extent_granules_(extent_granules),
      take_extent_(std::move(take_extent)) {}

std::optional<RecordSpace::Allocation> RecordSpace::take(std::int64_t size_bytes) {
  const int size_class = record_class::of((size_bytes + granule_bytes_ - 1) / granule_bytes_);
  const std::int64_t count = record_class::granules(size_class);
  const std::lock_guard guard(mutex_);
  auto granule = gaps_.take_tightest(count);
  if (!granule) {
    const auto extent = take_extent_(count, std::max(extent_granules_, count));
    if (!extent) return std::nullopt;
    gaps_.give(extent->first, extent->granules);
    granule = gaps_.take_tightest(count);
  }
  return Allocation{*granule, size_class};
}

void RecordSpace::give(const Allocation& allocation) {
  const std::lock_guard guard(mutex_);
  gaps_.give(allocation.granule, record_class::granules(allocation.size_class));
}

std::int64_t RecordSpace::free_bytes() const {
  const std::lock_guard guard(mutex_);
  return gaps_.total() * granule_bytes_;
}

}  // namespace outcore::file
