#include "dio/chunks/store.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/accumulate_strided.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/engine.hpp"

namespace outcore::dio {
namespace {

// The overlaps that are read ahead while one is copied: many small ones, because a disk takes as long for
// each.
constexpr std::int64_t ahead_bytes = 1 << 20;
constexpr std::int64_t min_overlaps_ahead = 8, max_overlaps_ahead = 32;

std::vector<ChunkOverlap> overlaps_in(const ChunkGrid& grid, int component, const Slices& slices) {
  std::vector<ChunkOverlap> overlaps;
  for_each_overlap(grid, component, slices,
                   [&](const ChunkOverlap& overlap) { overlaps.push_back(overlap); });
  return overlaps;
}

}  // namespace

ChunksAhead::Share::Share(ChunksAhead& all, std::int64_t wanted)
    : all_(all),
      chunks_(std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(all.max_chunks_ / 2, 1))) {
  std::unique_lock lock(all_.mutex_);
  all_.given_back_.wait(lock, [&] { return all_.taken_ == 0 || all_.taken_ + chunks_ <= all_.max_chunks_; });
  all_.taken_ += chunks_;
}

ChunksAhead::Share::~Share() {
  {
    const std::lock_guard lock(all_.mutex_);
    all_.taken_ -= chunks_;
  }
  all_.given_back_.notify_all();
}

void ChunkStore::add(int component, store::Component file, const store::ChunkCacheOptions& cache,
                     store::StateLease lease) {
  auto owned_file = std::make_unique<store::Component>(std::move(file));
  auto its_cache = std::make_unique<store::ChunkCache>(*owned_file, cache);
  auto ahead = std::make_unique<ChunksAhead>(its_cache->max_chunks());
  components_.push_back(
      {component, std::move(lease), std::move(owned_file), std::move(its_cache), std::move(ahead)});
}

const OwnedComponent& ChunkStore::owned(int component) const {
  const auto found = std::ranges::find(components_, component, &OwnedComponent::index);
  if (found == components_.end())
    throw Error(EINVAL, {.attempted = "access to component " + std::to_string(component) + " of a disk array",
                         .detail = "it is not this process's"});
  return *found;
}

/// The blocks that an overlap touches. The cache adds blocks between them where that is faster to read.
store::Blocks ChunkStore::blocks_of(const OwnedComponent& owner, const ChunkOverlap& overlap) const {
  if (owner.file->geometry().blocks() == 1 || overlap.whole) return owner.cache->all_blocks();
  store::Blocks blocks;
  overlap.for_each_row(grid_.element_bytes(), [&](std::int64_t begin, std::int64_t end) {
    owner.cache->add_blocks(blocks, begin, end);
  });
  return blocks;
}

bool ChunkStore::has_room(int component, std::int64_t chunks) const {
  return owned(component).cache->max_chunks() >= chunks;
}

/// Calls `use` for each overlap, while the blocks of later overlaps that `needed` names are read.
void ChunkStore::go_through(int component, const Slices& slices,
                            const std::function<store::Blocks(const ChunkOverlap& overlap)>& needed,
                            const std::function<void(const ChunkOverlap& overlap)>& use) {
  const OwnedComponent& owner = owned(component);
  const std::vector<ChunkOverlap> overlaps = overlaps_in(grid_, component, slices);
  std::optional<ChunksAhead::Share> share;
  if (std::any_of(overlaps.begin() + !overlaps.empty(), overlaps.end(),
                  [&](const ChunkOverlap& overlap) { return needed(overlap).any(); })) {
    const std::int64_t overlaps_ahead = std::clamp(ahead_bytes / owner.file->geometry().stride_bytes(),
                                                   min_overlaps_ahead, max_overlaps_ahead);
    share.emplace(*owner.ahead, std::min(overlaps_ahead + 1, std::ssize(overlaps)));
  }
  const std::size_t max_ahead = share ? static_cast<std::size_t>(share->chunks() - 1) : 0;
  std::size_t ahead = 1;
  for (std::size_t i = 0; i < overlaps.size(); ++i) {
    ahead = std::max(ahead, i + 1);
    if (max_ahead > 0 && ahead < overlaps.size()) {
      const device::Burst burst(device::Burst::Then::rests);  // ends before this thread waits for another
      for (; ahead < overlaps.size() && ahead <= i + max_ahead; ++ahead)
        if (const store::Blocks blocks = needed(overlaps[ahead]); blocks.any())
          owner.cache->prefetch(overlaps[ahead].slot, blocks);
    }
    use(overlaps[i]);
  }
}

void ChunkStore::get(int component, const Slices& slices, const MemoryOf& to) {
  const OwnedComponent& owner = owned(component);
  const auto needed = [&](const ChunkOverlap& overlap) { return blocks_of(owner, overlap); };
  go_through(component, slices, needed, [&](const ChunkOverlap& overlap) {
    owner.cache->look(overlap.slot, needed(overlap), [&](std::span<const std::byte> chunk) {
      const Strided memory = to(overlap);
      copy_strided(memory.data, memory.stride_bytes, chunk.data() + overlap.offset, overlap.stride_bytes,
                   overlap.count, grid_.element_bytes());
    });
  });
}

/// `sets`: sets all elements of an overlap, so that a chunk without other elements of the array need not be
/// read.
void ChunkStore::change(int component, const Slices& slices, bool sets,
                        const std::function<void(const ChunkOverlap&, std::byte*)>& visit) {
  const OwnedComponent& owner = owned(component);
  if (read_only_)
    throw Error(EROFS, {.attempted = "write to a disk array", .detail = "it was opened read-only"});
  if (frozen_) throw Error(EIO, {.attempted = "write to a disk array", .detail = std::string(why_frozen)});
  const auto needed = [&](const ChunkOverlap& overlap) {
    return sets && overlap.whole ? store::Blocks() : owner.cache->all_blocks();
  };
  go_through(component, slices, needed, [&](const ChunkOverlap& overlap) {
    const bool whole = sets && overlap.whole;
    owner.cache->change(overlap.slot, whole, [&](std::span<std::byte> chunk) {
      changed_ = true;  // here, where no commit is under way that would count it as its own
      if (whole && overlap.count != grid_.chunk())
        std::ranges::fill(chunk, std::byte{0});  // beyond the array
      visit(overlap, chunk.data() + overlap.offset);
    });
  });
}

void ChunkStore::put(int component, const Slices& slices, const MemoryOf& from) {
  change(component, slices, true, [&](const ChunkOverlap& overlap, std::byte* first) {
    const Strided memory = from(overlap);
    copy_strided(first, overlap.stride_bytes, memory.data, memory.stride_bytes, overlap.count,
                 grid_.element_bytes());
  });
}

void ChunkStore::accumulate(int component, const Slices& slices, const MemoryOf& from, const void* alpha) {
  change(component, slices, false, [&](const ChunkOverlap& overlap, std::byte* first) {
    const Strided memory = from(overlap);
    accumulate_strided(first, overlap.stride_bytes, memory.data, memory.stride_bytes, overlap.count, type_,
                       alpha);
  });
}

void ChunkStore::prefetch(int component, const Slices& slices) {
  const OwnedComponent& owner = owned(component);
  for_each_overlap(grid_, component, slices, [&](const ChunkOverlap& overlap) {
    owner.cache->prefetch(overlap.slot, blocks_of(owner, overlap));
  });
}

namespace {

/// A function: whether a slot of the component holds elements of the boxes, which must outlive it.
std::function<bool(std::int64_t slot)> touching(const ChunkGrid& grid, int component,
                                                std::span<const Box> boxes) {
  return [&grid, component, boxes](std::int64_t slot) {
    const Box chunk = grid.chunk_box(grid.chunk_at(component, slot));
    return std::ranges::any_of(boxes, [&](const Box& box) { return !intersection(chunk, box).empty(); });
  };
}

}  // namespace

ChunkStore::Pause::Pause(ChunkStore& store, std::span<const Box> boxes, bool drop) : store_(store) {
  for (const OwnedComponent& owner : store.components_)
    pauses_.push_back(std::make_unique<store::ChunkCache::Pause>(
        *owner.cache, touching(store.grid_, owner.index, boxes), drop));
}

bool ChunkStore::Pause::extend(const Box& box) {
  for (std::size_t i = 0; i < pauses_.size(); ++i)
    if (!pauses_[i]->extend(touching(store_.grid_, store_.components_[i].index, std::span(&box, 1))))
      return false;
  return true;
}

}  // namespace outcore::dio
