#include "dio/chunks/store.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/accumulate_strided.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/engine.hpp"

namespace outcore::array {
namespace {

// What is being read while a piece is copied: many small ones, because each takes a disk as long.
constexpr std::int64_t ahead_bytes = 1 << 20;
constexpr std::int64_t min_pieces_ahead = 8, max_pieces_ahead = 32;

std::vector<ChunkPiece> pieces_in(const ChunkGrid& grid, int component, const Slices& slices) {
  std::vector<ChunkPiece> pieces;
  for_each_piece(grid, component, slices, [&](const ChunkPiece& piece) { pieces.push_back(piece); });
  return pieces;
}

}  // namespace

void ChunkStore::add(int component, store::Component file, const store::ChunkCacheOptions& cache,
                     StateLease lease) {
  auto owned_file = std::make_unique<store::Component>(std::move(file));
  auto its_cache = std::make_unique<store::ChunkCache>(*owned_file, cache);
  components_.push_back({component, std::move(lease), std::move(owned_file), std::move(its_cache)});
}

const OwnedComponent& ChunkStore::owned(int component) const {
  const auto found = std::ranges::find(components_, component, &OwnedComponent::index);
  if (found == components_.end())
    throw Error(EINVAL, {.attempted = "access to component " + std::to_string(component) + " of a disk array",
                         .detail = "it is not this process's"});
  return *found;
}

/// The blocks that a piece touches; those between them, if that is read faster, the cache adds.
store::Blocks ChunkStore::blocks_of(const OwnedComponent& owner, const ChunkPiece& piece) const {
  if (owner.file->geometry().blocks() == 1 || piece.whole) return owner.cache->all_blocks();
  store::Blocks blocks;
  piece.for_each_row(grid_.element_bytes(), [&](std::int64_t begin, std::int64_t end) {
    owner.cache->add_blocks(blocks, begin, end);
  });
  return blocks;
}

void ChunkStore::get(int component, const Slices& slices, const MemoryOf& to) {
  const OwnedComponent& owner = owned(component);
  const std::vector<ChunkPiece> pieces = pieces_in(grid_, component, slices);
  const auto pieces_ahead = static_cast<std::size_t>(
      std::clamp(ahead_bytes / owner.file->geometry().stride_bytes(), min_pieces_ahead, max_pieces_ahead));
  std::size_t ahead = 1;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (ahead < pieces.size()) {
      const device::Burst burst(device::Burst::Then::rests);  // ends before anybody is waited for
      for (; ahead < pieces.size() && ahead <= i + pieces_ahead; ++ahead)
        owner.cache->prefetch(pieces[ahead].slot, blocks_of(owner, pieces[ahead]));
    }
    const ChunkPiece& piece = pieces[i];
    owner.cache->look(piece.slot, blocks_of(owner, piece), [&](std::span<const std::byte> chunk) {
      const Strided memory = to(piece);
      copy_strided(memory.data, memory.stride_bytes, chunk.data() + piece.offset, piece.stride_bytes,
                   piece.count, grid_.element_bytes());
    });
  }
}

/// `sets`: all elements of a piece, so that a chunk of which nothing else is in the array is not read.
void ChunkStore::change(int component, const Slices& slices, bool sets,
                        const std::function<void(const ChunkPiece&, std::byte*)>& visit) {
  const OwnedComponent& owner = owned(component);
  if (read_only_)
    throw Error(EROFS, {.attempted = "write to a disk array", .detail = "it was opened read-only"});
  if (frozen_) throw Error(EIO, {.attempted = "write to a disk array", .detail = std::string(why_frozen)});
  for_each_piece(grid_, component, slices, [&](const ChunkPiece& piece) {
    const bool whole = sets && piece.whole;
    owner.cache->change(piece.slot, whole, [&](std::span<std::byte> chunk) {
      changed_ = true;  // here, where no commit is going on that would take it for its own
      if (whole && piece.count != grid_.chunk()) std::ranges::fill(chunk, std::byte{0});  // beyond the array
      visit(piece, chunk.data() + piece.offset);
    });
  });
}

void ChunkStore::put(int component, const Slices& slices, const MemoryOf& from) {
  change(component, slices, true, [&](const ChunkPiece& piece, std::byte* first) {
    const Strided memory = from(piece);
    copy_strided(first, piece.stride_bytes, memory.data, memory.stride_bytes, piece.count,
                 grid_.element_bytes());
  });
}

void ChunkStore::accumulate(int component, const Slices& slices, const MemoryOf& from, const void* alpha) {
  change(component, slices, false, [&](const ChunkPiece& piece, std::byte* first) {
    const Strided memory = from(piece);
    accumulate_strided(first, piece.stride_bytes, memory.data, memory.stride_bytes, piece.count, type_,
                       alpha);
  });
}

void ChunkStore::prefetch(int component, const Slices& slices) {
  const OwnedComponent& owner = owned(component);
  for_each_piece(grid_, component, slices, [&](const ChunkPiece& piece) {
    owner.cache->prefetch(piece.slot, blocks_of(owner, piece));
  });
}

namespace {

/// Whether a slot of the component holds anything of the boxes, which live longer than the answer.
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

}  // namespace outcore::array
