#include "dio/stripes/extents.hpp"

#include <algorithm>
#include <cstring>

namespace outcore::store {

Runs::Runs(std::span<Extent> extents, bool write) {
  std::ranges::stable_sort(extents, {}, &Extent::offset);
  const std::int64_t max_gap = write ? 0 : max_gap_bytes;
  const auto gap_before = [&](std::size_t i) {  // negative: it cannot be joined to the one before
    const std::int64_t gap =
        i == 0 ? -1 : extents[i].offset - extents[i - 1].offset - extents[i - 1].size_bytes;
    return gap <= max_gap ? gap : -1;
  };
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) longest = std::max(longest, gap_before(i));
  sink_.resize(static_cast<std::size_t>(longest));  // before its address is used
  entries_.reserve(extents.size() * (longest > 0 ? 2 : 1));
  for (std::size_t i = 0; i < extents.size(); ++i) append(extents[i], gap_before(i));
}

void Runs::append(const Extent& extent, std::int64_t gap_bytes) {
  if (gap_bytes < 0) runs_.push_back({extent.offset, 0, entries_.size(), 0});
  Run& run = runs_.back();
  if (gap_bytes > 0) {
    entries_.push_back({sink_.data(), static_cast<std::size_t>(gap_bytes)});
    run.size_bytes += gap_bytes;
    ++run.count;
  }
  entries_.push_back({extent.memory, static_cast<std::size_t>(extent.size_bytes)});
  run.size_bytes += extent.size_bytes;
  ++run.count;
}

void Runs::zero_beyond(const Run& run, std::int64_t moved_bytes) const noexcept {
  for (const iovec& entry : list(run)) {
    const auto size = static_cast<std::int64_t>(entry.iov_len);
    const std::int64_t there = std::clamp<std::int64_t>(moved_bytes, 0, size);
    if (there < size)
      std::memset(static_cast<std::byte*>(entry.iov_base) + there, 0, static_cast<std::size_t>(size - there));
    moved_bytes -= size;
  }
}

}  // namespace outcore::store
