// The part of a disk array that one process holds: its components, and noncollective operations on them.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "dio/chunks/grid.hpp"
#include "dio/chunks/overlap.hpp"
#include "outcore/box.hpp"
#include "outcore/element_type.hpp"
#include "store/chunk_cache.hpp"
#include "store/component.hpp"
#include "store/state_lease.hpp"

namespace outcore::dio {

/// Room for chunks in a cache. Each operation that reads ahead reserves some while it lasts. Without that,
/// one operation would evict chunks that another has read ahead, and both would read twice. An operation that
/// finds too few waits.
class ChunksAhead {
 public:
  explicit ChunksAhead(std::int64_t max_chunks) : max_chunks_(max_chunks) {}

  class Share {
   public:
    /// Reserves at most this number, which includes the chunk in use; at least one.
    Share(ChunksAhead& all, std::int64_t wanted);
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    [[nodiscard]] std::int64_t chunks() const noexcept { return chunks_; }

   private:
    ChunksAhead& all_;
    const std::int64_t chunks_;
  };

 private:
  const std::int64_t max_chunks_;
  std::mutex mutex_;
  std::condition_variable given_back_;
  std::int64_t taken_ = 0;
};

/// A component that this process owns. Noncollective operations go through the cache.
struct OwnedComponent {
  int index = 0;
  store::StateLease lease;  ///< of the state that is read; released after the file is closed
  std::unique_ptr<store::Component> file;
  std::unique_ptr<store::ChunkCache> cache;
  std::unique_ptr<ChunksAhead> ahead;
};

/// Any thread, at any time; all components must be added before. Operations on one chunk happen one at a
/// time. Errors are those of the cache, and Error(EINVAL) for a component that is not here.
class ChunkStore {
 public:
  ChunkStore(const ChunkGrid& grid, ElementType type, bool read_only)
      : grid_(grid), type_(type), read_only_(read_only) {}

  void add(int component, store::Component file, const store::ChunkCacheOptions& cache,
           store::StateLease lease = {});

  [[nodiscard]] const ChunkGrid& grid() const noexcept { return grid_; }
  [[nodiscard]] ElementType type() const noexcept { return type_; }
  [[nodiscard]] std::span<const OwnedComponent> components() const noexcept { return components_; }

  /// The memory of the elements of an overlap.
  using MemoryOf = std::function<Strided(const ChunkOverlap& overlap)>;
  void get(int component, const Slices& slices, const MemoryOf& to);
  void put(int component, const Slices& slices, const MemoryOf& from);
  void accumulate(int component, const Slices& slices, const MemoryOf& from, const void* alpha);
  void prefetch(int component, const Slices& slices);
  /// Whether the cache of a component has room for this many chunks.
  [[nodiscard]] bool has_room(int component, std::int64_t chunks) const;

  /// Whether anything was put since the last acknowledged query.
  [[nodiscard]] bool changed() const noexcept { return changed_; }
  void deal_with_changes() noexcept { changed_ = false; }
  /// From now on changes are Error(EIO).
  void freeze() noexcept { frozen_ = true; }
  static constexpr std::string_view why_frozen =
      "a commit failed when its state may have been taken for the present one already: close the array, and "
      "open it again";

  /// While it lives, no thread is in the caches, and the components hold all puts into the boxes. `drop`: the
  /// caches drop the chunks of the boxes.
  class Pause {
   public:
    Pause(ChunkStore& store, std::span<const Box> boxes, bool drop);
    /// Extends it to one more box. False if somebody waits for its end, and then it must end.
    [[nodiscard]] bool extend(const Box& box);

   private:
    ChunkStore& store_;
    std::vector<std::unique_ptr<store::ChunkCache::Pause>> pauses_;
  };

 private:
  [[nodiscard]] const OwnedComponent& owned(int component) const;
  [[nodiscard]] store::Blocks blocks_of(const OwnedComponent& owner, const ChunkOverlap& overlap) const;
  void go_through(int component, const Slices& slices,
                  const std::function<store::Blocks(const ChunkOverlap& overlap)>& needed,
                  const std::function<void(const ChunkOverlap& overlap)>& use);
  void change(int component, const Slices& slices, bool sets,
              const std::function<void(const ChunkOverlap& overlap, std::byte* first)>& visit);

  const ChunkGrid grid_;
  const ElementType type_;
  const bool read_only_;
  std::vector<OwnedComponent> components_;
  std::atomic<bool> changed_{false}, frozen_{false};
};

}  // namespace outcore::dio
