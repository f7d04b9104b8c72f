#include "world/pool.hpp"

#include <algorithm>
#include <vector>

#include "outcore/extend/transport.hpp"

namespace outcore::world {
namespace {

constexpr std::int64_t segment_bytes = 32 << 20;  // untouched memory costs nothing

}  // namespace

Pool::~Pool() {
  for (const auto& [number, entry] : entries_) {
    entry->segment = nullptr;
    while (const std::uint32_t uses = entry->uses.load()) entry->uses.wait(uses);
  }
  // In an order that is the same at all processes.
  for (auto& [number, segment] : segments_) segment.reset();
}

std::shared_ptr<Entry> Pool::allocate(std::int64_t size_bytes) {
  const bool cleared = reclaim();
  auto allocation = space_.take(size_bytes);
  if (!allocation) {
    add_segment(std::max(segment_bytes, SegmentSpace::whole_large_pages(size_bytes)));
    allocation = space_.take(size_bytes);
  }
  if (cleared) transport_.barrier();  // no process writes to it before all parts are zero
  const auto entry = std::make_shared<Entry>();
  entry->allocation = *allocation;
  entry->segment = segments_.at(allocation->segment).get();
  entry->segment.load()->populate(allocation->offset, allocation->size_bytes);
  entry->size_bytes = size_bytes;
  entries_[next_entry_++] = entry;
  return entry;
}

/// Frees the regions that all processes have destroyed, in whatever order. True if memory was cleared.
bool Pool::reclaim() {
  if (entries_.empty()) return false;
  std::vector<std::int64_t> released;
  released.reserve(entries_.size());
  for (const auto& [number, entry] : entries_) released.push_back(entry->released ? 1 : 0);
  flush();  // so that no operation of this process arrives later
  transport_.all_reduce(released, transport::Reduction::min);
  bool cleared = false;
  auto entry = entries_.begin();
  for (const std::int64_t by_all : released) {
    const auto here = entry++;
    if (by_all == 0) continue;
    const Allocation& allocation = here->second->allocation;
    space_.give(allocation);
    const auto segment = segments_.find(allocation.segment);
    if (space_.unused(allocation.segment) &&
        segment->second->size_bytes() > static_cast<std::size_t>(segment_bytes)) {
      space_.remove(allocation.segment);
      std::unique_ptr<transport::Segment> gone;  // without the lock: it may wait for a thread that flushes
      const std::lock_guard guard(mutex_);
      gone = std::move(segment->second);
      segments_.erase(segment);
    } else {
      segment->second->clear(allocation.offset, allocation.size_bytes);
      cleared = true;
    }
    entries_.erase(here);
  }
  return cleared;
}

void Pool::add_segment(std::int64_t size_bytes) {
  auto segment = transport_.allocate(static_cast<std::size_t>(size_bytes), shared_);
  const std::lock_guard guard(mutex_);
  segments_[next_segment_] = std::move(segment);
  space_.add(next_segment_++, size_bytes);
}

void Pool::flush() {
  const std::lock_guard guard(mutex_);
  for (auto& [number, segment] : segments_) segment->flush();
}

}  // namespace outcore::world
