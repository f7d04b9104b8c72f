#include "dio/stripes/joined_ranges.hpp"

#include <algorithm>
#include <cstring>

namespace outcore::dio {

JoinedRanges::JoinedRanges(std::span<TransferRange> ranges, bool write) {
  std::ranges::stable_sort(ranges, {}, &TransferRange::offset);
  const std::int64_t max_gap = write ? 0 : max_gap_bytes;
  const auto gap_before = [&](std::size_t i) {  // negative: it cannot be joined to the one before
    const std::int64_t gap = i == 0 ? -1 : ranges[i].offset - ranges[i - 1].offset - ranges[i - 1].size_bytes;
    return gap <= max_gap ? gap : -1;
  };
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) longest = std::max(longest, gap_before(i));
  sink_.resize(static_cast<std::size_t>(longest));  // before its address is used
  entries_.reserve(ranges.size() * (longest > 0 ? 2 : 1));
  for (std::size_t i = 0; i < ranges.size(); ++i) append(ranges[i], gap_before(i));
}

void JoinedRanges::append(const TransferRange& range, std::int64_t gap_bytes) {
  if (gap_bytes < 0) joined_.push_back({{range.offset, 0}, entries_.size(), 0});
  Joined& one = joined_.back();
  if (gap_bytes > 0) {
    entries_.push_back({sink_.data(), static_cast<std::size_t>(gap_bytes)});
    one.size_bytes += gap_bytes;
    ++one.count;
  }
  entries_.push_back({range.memory, static_cast<std::size_t>(range.size_bytes)});
  one.size_bytes += range.size_bytes;
  ++one.count;
}

void JoinedRanges::zero_beyond(const Joined& one, std::int64_t moved_bytes) const noexcept {
  for (const iovec& entry : list(one)) {
    const auto size = static_cast<std::int64_t>(entry.iov_len);
    const std::int64_t there = std::clamp<std::int64_t>(moved_bytes, 0, size);
    if (there < size)
      std::memset(static_cast<std::byte*>(entry.iov_base) + there, 0, static_cast<std::size_t>(size - there));
    moved_bytes -= size;
  }
}

}  // namespace outcore::dio
