// The block cache at the owner of a component: decoded chunks in memory, for noncollective requests.
#pragma once

#include <bitset>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "device/buffer.hpp"
#include "store/component.hpp"

namespace outcore::store {

struct ChunkCacheOptions {
  std::int64_t max_bytes = 64 << 20;  ///< of chunks; never fewer than two chunks
  /// Called before memory is taken (it may throw, and then there is none), and with a negative number when it
  /// is given back.
  std::function<void(std::int64_t bytes)> account = {};
};

/// The number of bytes whose read takes as long as a request itself, with others under way. Measured: [M20].
inline constexpr std::int64_t worth_a_request_bytes = 32 << 10;

/// Blocks of a chunk. Each has a checksum, so a part of a chunk can be read without the rest.
using Blocks = std::bitset<Geometry::max_blocks>;

/// Keeps the most recently used chunks. Changed chunks are written behind, several at a time, and at the
/// latest when their memory is needed, by `flush` or by `pause`. A failed write loses nothing: the chunk
/// stays in memory and its write is repeated. The error is thrown to the thread that needs the memory of the
/// chunk, else by `flush` or `pause`. At most three quarters of the memory hold chunks that are not on disk,
/// so reads go on if a disk is full.
///
/// Any thread, at any time. Visitors get a chunk for themselves: operations on one chunk happen one at a
/// time, those on different chunks at once. A visitor must not use the cache.
class ChunkCache {
 public:
  ChunkCache(Component& component, ChunkCacheOptions options);
  ~ChunkCache();  ///< waits for I/O under way; drops changes that were not flushed
  ChunkCache(const ChunkCache&) = delete;
  ChunkCache& operator=(const ChunkCache&) = delete;

  [[nodiscard]] Blocks all_blocks() const noexcept;
  /// Marks the blocks that hold the bytes from `begin` up to `end`; returns their number. For the lists of
  /// the methods below.
  void add_blocks(Blocks& blocks, std::int64_t begin, std::int64_t end) const noexcept;

  [[nodiscard]] std::int64_t max_chunks() const noexcept { return max_chunks_; }

  /// Begins to read blocks of a chunk, if there is unused memory. Does not wait for I/O.
  void prefetch(std::int64_t slot, const Blocks& needed);
  /// `visit` may read the blocks in `needed`. Small gaps between needed blocks are read with them, because
  /// one request costs less than two.
  using Look = std::function<void(std::span<const std::byte> chunk)>;
  void look(std::int64_t slot, const Blocks& needed, const Look& visit);
  /// `visit` may change the chunk. If it sets all of it (`whole`), the chunk is not read before. If a visitor
  /// throws, its changes are kept, except in a chunk that was to be set as a whole and was not in memory.
  using Change = std::function<void(std::span<std::byte> chunk)>;
  void change(std::int64_t slot, bool whole, const Change& visit);

  /// Writes all changed chunks to the component. Throws the first failure after all were tried.
  void flush();

  /// While it lives, the component may be used directly: no thread is in the cache, and nothing is under way
  /// for the chunks concerned, which are written and (`drop`) removed from the cache. Other threads wait. One
  /// at a time.
  class Pause {
   public:
    Pause(ChunkCache& cache, const std::function<bool(std::int64_t slot)>& concerned, bool drop);
    ~Pause();
    /// Extends the pause to more chunks. False, without effect, if somebody waits for its end.
    [[nodiscard]] bool extend(const std::function<bool(std::int64_t slot)>& concerned);
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    ChunkCache& cache_;
  };

 private:
  struct Write;
  struct Entry {
    std::int64_t slot = 0;
    std::byte* memory = nullptr;
    int awaited = 0;  ///< number of threads that want it next
    bool dirty = false;
    std::shared_ptr<Write> write;  ///< under way; blocks that are written do not change meanwhile
    bool busy = false;             ///< a thread has it alone; only that thread changes the following
    bool unused = false;           ///< read ahead, and not used yet
    Blocks valid, coming;
    std::vector<Request> reads;
  };
  using Entries = std::list<Entry>;  ///< the most recently used one at the end
  using EntryRef = Entries::iterator;
  /// Neighbours on disk that are neighbours in memory are written in one request.
  struct Write {
    std::vector<EntryRef> entries;
    Request request;
    bool taken = true;  ///< used by the thread that begins it or waits for it
    bool ended = false;
    std::exception_ptr failure;
  };
  using Lock = std::unique_lock<std::mutex>;

  [[nodiscard]] EntryRef take(Lock& lock, std::int64_t slot);
  void release(EntryRef entry) noexcept;
  [[nodiscard]] EntryRef insert(std::int64_t slot, std::byte* memory);
  [[nodiscard]] std::byte* find_memory(bool evict_unused);
  void wait_for_memory(Lock& lock);
  [[nodiscard]] bool grow();
  [[nodiscard]] bool evict(bool also_unused);
  void erase(EntryRef entry);

  void begin_reads(Entry& entry, const Blocks& needed);
  void finish_reads(Entry& entry);
  void make_valid(Entry& entry, const Blocks& needed);

  void promise_change(Lock& lock);
  [[nodiscard]] std::exception_ptr begin_writes(Lock& lock, std::size_t count);
  [[nodiscard]] std::exception_ptr begin_write(Lock& lock, EntryRef first);
  [[nodiscard]] std::exception_ptr finish_write(Lock& lock, const std::shared_ptr<Write>& under_way);
  void end_write(const std::shared_ptr<Write>& write, std::exception_ptr failure);
  void collect_written(Lock& lock);
  void write_one(Lock& lock);
  [[nodiscard]] std::exception_ptr write_all(Lock& lock, const std::function<bool(std::int64_t)>& concerned);

  void wait_for_end_of_pause(Lock& lock);
  void enter_alone(Lock& lock);
  void settle(Lock& lock, const std::function<bool(std::int64_t)>& concerned);

  [[nodiscard]] std::span<std::byte> stride_of(const Entry& entry) const noexcept;
  [[nodiscard]] std::int64_t max_dirty() const noexcept;

  Component& component_;
  const ChunkCacheOptions options_;
  const std::int64_t stride_bytes_, max_chunks_;

  std::mutex mutex_;
  std::condition_variable changed_;  ///< an entry was released, memory has become free, a pause ended
  Entries entries_;
  std::unordered_map<std::int64_t, EntryRef> index_;
  std::vector<device::Buffer> arenas_;  ///< each of several chunks: large pieces are faster to read into
  std::vector<std::byte*> free_;
  std::int64_t chunks_ = 0;                   ///< in the arenas
  std::int64_t dirty_ = 0;                    ///< number of entries that are dirty, or about to be
  std::list<std::shared_ptr<Write>> writes_;  ///< the oldest first
  std::int64_t writing_ = 0;                  ///< entries of these
  int busy_ = 0;
  bool alone_ = false;    ///< a pause or a flush
  int waiting_ = 0;       ///< number of threads that wait for its end
  bool failing_ = false;  ///< the last write failed: wait until one must be tried
};

}  // namespace outcore::store
