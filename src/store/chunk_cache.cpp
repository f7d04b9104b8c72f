#include "store/chunk_cache.hpp"

#include <algorithm>
#include <utility>

#include "outcore/error.hpp"

namespace outcore::store {
namespace {

constexpr std::int64_t arena_bytes = 2 << 20;
constexpr std::int64_t min_chunks = 2;  // one that is changed, one that is read
constexpr std::size_t max_writing = 8;  // requests
constexpr std::int64_t max_write_bytes = 2 << 20;

/// Several threads may learn of one failure; each throws its own copy.
std::exception_ptr own_copy(const std::exception_ptr& failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const Error& error) {
    return std::make_exception_ptr(Error(error));
  } catch (...) {
  }
  return failure;
}

}  // namespace

ChunkCache::ChunkCache(Component& component, ChunkCacheOptions options)
    : component_(component),
      options_(std::move(options)),
      stride_bytes_(component.geometry().stride_bytes()),
      max_chunks_(std::max(min_chunks, options_.max_bytes / stride_bytes_)) {}

ChunkCache::~ChunkCache() {
  entries_.clear();  // waits
  if (options_.account) options_.account(-chunks_ * stride_bytes_);
}

Blocks ChunkCache::all_blocks() const noexcept {
  return Blocks().set() >> (Geometry::max_blocks - static_cast<std::size_t>(component_.geometry().blocks()));
}

void ChunkCache::add_blocks(Blocks& blocks, std::int64_t begin, std::int64_t end) const noexcept {
  const std::int64_t block_bytes = component_.geometry().block_bytes;
  for (std::int64_t i = begin / block_bytes; i * block_bytes < end; ++i)
    blocks.set(static_cast<std::size_t>(i));
}

std::span<std::byte> ChunkCache::stride_of(const Entry& entry) const noexcept {
  return {entry.memory, static_cast<std::size_t>(stride_bytes_)};
}

std::int64_t ChunkCache::max_dirty() const noexcept {
  return std::max<std::int64_t>(chunks_ * 3 / 4, 1);
}

// ---- entries and their memory

/// The entry of a chunk, held by this thread alone.
ChunkCache::EntryRef ChunkCache::take(Lock& lock, std::int64_t slot) {
  while (true) {
    wait_for_end_of_pause(lock);
    if (const auto found = index_.find(slot); found != index_.end()) {
      const EntryRef entry = found->second;
      if (!entry->busy) {
        entry->busy = true;
        entry->unused = false;
        ++busy_;
        entries_.splice(entries_.end(), entries_, entry);
        return entry;
      }
      ++entry->awaited;
      changed_.wait(lock, [&] { return !entry->busy; });
      --entry->awaited;
    } else if (std::byte* memory = find_memory(true)) {
      return insert(slot, memory);
    } else {
      wait_for_memory(lock);
    }
  }
}

ChunkCache::EntryRef ChunkCache::insert(std::int64_t slot, std::byte* memory) {
  entries_.emplace_back();
  const auto entry = std::prev(entries_.end());
  entry->slot = slot;
  entry->memory = memory;
  entry->busy = true;
  ++busy_;
  index_[slot] = entry;
  return entry;
}

void ChunkCache::release(EntryRef entry) noexcept {
  entry->busy = false;
  --busy_;
  changed_.notify_all();
}

void ChunkCache::erase(EntryRef entry) {
  free_.push_back(entry->memory);
  index_.erase(entry->slot);
  entries_.erase(entry);
}

/// Without waiting; null if there is none.
std::byte* ChunkCache::find_memory(bool evict_unused) {
  if (free_.empty() && !grow() && !evict(evict_unused)) return nullptr;
  std::byte* memory = free_.back();
  free_.pop_back();
  return memory;
}

/// Waits for an event that may free memory.
void ChunkCache::wait_for_memory(Lock& lock) {
  // A chunk that is being read ahead can be evicted once its read has ended.
  const auto coming = std::find_if(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return !entry.busy && entry.awaited == 0 && !entry.dirty && !entry.reads.empty();
  });
  if (coming == entries_.end()) {
    changed_.wait(lock);
    return;
  }
  coming->busy = true;
  ++busy_;
  lock.unlock();
  try {
    finish_reads(*coming);
  } catch (const std::exception&) {  // nobody has asked for it
  }
  lock.lock();
  release(coming);
}

/// Takes more memory; false at the limit.
bool ChunkCache::grow() {
  const std::int64_t least = chunks_ == 0 ? min_chunks : 1;
  const std::int64_t count = std::min(std::max(least, arena_bytes / stride_bytes_), max_chunks_ - chunks_);
  if (count <= 0) return false;
  const std::int64_t size = count * stride_bytes_;
  try {
    if (options_.account) options_.account(size);
  } catch (const Error&) {
    if (chunks_ == 0) throw;
    return false;
  }
  try {
    arenas_.emplace_back(static_cast<std::size_t>(size));
  } catch (...) {
    if (options_.account) options_.account(-size);
    throw;
  }
  for (std::int64_t i = count - 1; i >= 0; --i) free_.push_back(arenas_.back().data() + i * stride_bytes_);
  chunks_ += count;
  return true;
}

/// Evicts first chunks that were used, the least recently used one; then chunks that were read ahead, the
/// last one first, because readers go forward.
bool ChunkCache::evict(bool also_unused) {
  const auto may_go = [](const Entry& entry, bool unused) {
    return !entry.busy && entry.awaited == 0 && !entry.dirty && entry.unused == unused &&
           std::ranges::all_of(entry.reads, [](const auto& read) { return read.done(); });
  };
  for (EntryRef entry = entries_.begin(); entry != entries_.end(); ++entry)
    if (may_go(*entry, false)) {
      erase(entry);
      return true;
    }
  if (!also_unused) return false;
  for (EntryRef entry = entries_.end(); entry != entries_.begin();)
    if (may_go(*--entry, true)) {
      erase(entry);
      return true;
    }
  return false;
}

// ---- reading

/// Begins to read the missing blocks.
void ChunkCache::begin_reads(Entry& entry, const Blocks& needed) {
  const Geometry& geometry = component_.geometry();
  const Blocks missing = needed & ~entry.valid & ~entry.coming;
  if (missing.none()) return;
  const auto blocks = static_cast<std::size_t>(geometry.blocks());
  const bool untouched = entry.valid.none() && entry.coming.none();
  if (geometry.codec.codec != Codec::none || (untouched && 2 * missing.count() > blocks)) {
    entry.reads.push_back(component_.read_async(entry.slot, 1, stride_of(entry)));
    entry.coming = all_blocks();
    return;
  }
  const auto hole = static_cast<std::size_t>(worth_a_request_bytes / geometry.block_bytes);
  for (std::size_t i = 0; i < blocks; ++i) {
    if (!missing[i]) continue;
    std::size_t end = i + 1;  // of the blocks that one request reads
    for (std::size_t k = end; k < blocks && k - end <= hole; ++k)
      if (missing[k]) end = k + 1;
    entry.reads.push_back(component_.read_blocks_async(entry.slot, static_cast<std::int64_t>(i),
                                                       static_cast<std::int64_t>(end - i), stride_of(entry)));
    for (; i < end; ++i) {  // overwrites blocks that were there
      entry.coming.set(i);
      entry.valid.reset(i);
    }
  }
}

void ChunkCache::finish_reads(Entry& entry) {
  std::vector<Request> reads = std::exchange(entry.reads, {});
  const Blocks read = std::exchange(entry.coming, {});
  wait_all(reads);
  entry.valid |= read;
}

void ChunkCache::make_valid(Entry& entry, const Blocks& needed) {
  begin_reads(entry, needed);
  if ((needed & ~entry.valid).any()) finish_reads(entry);
}

void ChunkCache::prefetch(std::int64_t slot, const Blocks& needed) {
  Lock lock(mutex_);
  if (alone_) return;
  EntryRef entry;
  if (const auto found = index_.find(slot); found != index_.end()) {
    entry = found->second;
    if (entry->busy) return;
    entry->busy = true;
    ++busy_;
  } else {
    std::byte* memory = find_memory(false);
    if (!memory) return;
    entry = insert(slot, memory);
    entry->unused = true;
  }
  lock.unlock();
  try {
    begin_reads(*entry, needed);
  } catch (const std::exception&) {  // the thread that needs the chunk meets the error again
  }
  lock.lock();
  release(entry);
}

void ChunkCache::look(std::int64_t slot, const Blocks& needed, const Look& visit) {
  Lock lock(mutex_);
  const EntryRef entry = take(lock, slot);
  lock.unlock();
  std::exception_ptr failure;
  try {
    make_valid(*entry, needed);
    visit(stride_of(*entry).first(static_cast<std::size_t>(component_.geometry().slot_bytes)));
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  release(entry);
  if (failure) std::rethrow_exception(failure);
}

// ---- changing and writing behind

void ChunkCache::change(std::int64_t slot, bool whole, const Change& visit) {
  Lock lock(mutex_);
  promise_change(lock);
  EntryRef entry;
  try {
    entry = take(lock, slot);
  } catch (...) {
    --dirty_;
    changed_.notify_all();
    throw;
  }
  if (entry->write) (void)finish_write(lock, entry->write);  // of memory that changes now
  lock.unlock();
  std::exception_ptr failure;
  bool touched = false;
  try {
    try {
      if (!whole)
        make_valid(*entry, all_blocks());
      else if (!entry->reads.empty())
        finish_reads(*entry);
    } catch (const std::exception&) {
      if (!whole) throw;  // else no thread needs the blocks that could not be read
    }
    touched = true;
    visit(stride_of(*entry).first(static_cast<std::size_t>(component_.geometry().slot_bytes)));
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  // A visitor that has failed may have changed a part of the chunk. The change is kept if the rest is known,
  // too.
  const bool known = !failure || (touched && entry->valid == all_blocks());
  if (!known || entry->dirty) --dirty_;  // the promise is not needed
  if (known) {
    entry->dirty = true;
    entry->valid = all_blocks();
  } else if (touched) {
    entry->valid.reset();
  }
  release(entry);
  if (failure) std::rethrow_exception(failure);
  if (!failing_ && dirty_ - writing_ > max_dirty() / 2) {
    collect_written(lock);
    if (writes_.size() < max_writing) (void)begin_writes(lock, 1);
  }
}

/// Returns when one more chunk may become dirty, and counts it as dirty. Throws if chunks must be written
/// before, and cannot.
void ChunkCache::promise_change(Lock& lock) {
  while (true) {
    wait_for_end_of_pause(lock);
    if (dirty_ < max_dirty()) break;
    if (!grow()) write_one(lock);
  }
  ++dirty_;
}

/// Begins to write the least recently used dirty chunks. Stops at the first failure, and returns it.
std::exception_ptr ChunkCache::begin_writes(Lock& lock, std::size_t count) {
  for (; count > 0 && !alone_; --count) {
    const auto entry = std::ranges::find_if(
        entries_, [](const Entry& each) { return each.dirty && !each.write && !each.busy; });
    if (entry == entries_.end()) break;
    if (std::exception_ptr failure = begin_write(lock, entry)) return failure;
  }
  return nullptr;
}

/// Writes a chunk together with those behind it.
std::exception_ptr ChunkCache::begin_write(Lock& lock, EntryRef first) {
  const auto write = std::make_shared<Write>();
  std::int64_t count = 0;
  for (EntryRef entry = first;;) {
    entry->write = write;
    write->entries.push_back(entry);
    const auto next = index_.find(first->slot + ++count);
    if (next == index_.end() || (count + 1) * stride_bytes_ > max_write_bytes) break;
    entry = next->second;
    if (!entry->dirty || entry->write || entry->busy ||
        entry->memory != first->memory + count * stride_bytes_)
      break;
  }
  writes_.push_back(write);
  writing_ += count;
  lock.unlock();
  std::exception_ptr failure;
  try {
    write->request = component_.write_async(first->slot, count,
                                            {first->memory, static_cast<std::size_t>(count * stride_bytes_)});
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  write->taken = false;
  if (failure) end_write(write, own_copy(failure));
  changed_.notify_all();
  return failure;
}

std::exception_ptr ChunkCache::finish_write(Lock& lock, const std::shared_ptr<Write>& under_way) {
  const std::shared_ptr<Write> write = under_way;  // the entries release it
  changed_.wait(lock, [&] { return !write->taken; });
  if (write->ended) return own_copy(write->failure);
  write->taken = true;
  lock.unlock();
  std::exception_ptr failure;
  try {
    write->request.wait();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  write->taken = false;
  end_write(write, own_copy(failure));
  return failure;
}

/// After a failure all of its chunks stay dirty; those that did reach the disk are written again.
void ChunkCache::end_write(const std::shared_ptr<Write>& write, std::exception_ptr failure) {
  const auto count = static_cast<std::int64_t>(write->entries.size());
  for (const EntryRef entry : write->entries) {
    entry->write = nullptr;
    entry->dirty = failure != nullptr;
  }
  writing_ -= count;
  if (!failure) dirty_ -= count;
  failing_ = failure != nullptr;
  write->ended = true;
  write->failure = std::move(failure);
  writes_.remove(write);
  changed_.notify_all();
}

/// Ends the writes that the disk has completed.
void ChunkCache::collect_written(Lock& lock) {
  while (true) {
    const auto done = std::ranges::find_if(
        writes_, [](const auto& write) { return !write->taken && write->request.done(); });
    if (done == writes_.end()) return;
    (void)finish_write(lock, *done);
  }
}

/// When this returns, more chunks are on disk, or it has waited for something.
void ChunkCache::write_one(Lock& lock) {
  collect_written(lock);
  if (dirty_ < max_dirty()) return;
  std::exception_ptr failure;
  if (writes_.size() < max_writing) failure = begin_writes(lock, max_writing - writes_.size());
  if (!failure && dirty_ >= max_dirty()) {
    if (!writes_.empty())
      failure = finish_write(lock, writes_.front());
    else
      changed_.wait(lock);
  }
  if (failure) std::rethrow_exception(failure);
}

// ---- all of it

void ChunkCache::wait_for_end_of_pause(Lock& lock) {
  ++waiting_;
  changed_.wait(lock, [&] { return !alone_; });
  --waiting_;
}

void ChunkCache::enter_alone(Lock& lock) {
  wait_for_end_of_pause(lock);
  alone_ = true;
  changed_.wait(lock, [&] { return busy_ == 0; });
}

/// Called alone. Tries all, returns the first failure.
std::exception_ptr ChunkCache::write_all(Lock& lock, const std::function<bool(std::int64_t)>& concerned) {
  std::exception_ptr first;
  const auto note = [&](std::exception_ptr failure) {
    if (failure && !first) first = std::move(failure);
  };
  std::vector<EntryRef> dirty;
  for (EntryRef entry = entries_.begin(); entry != entries_.end(); ++entry)
    if (entry->dirty && concerned(entry->slot)) dirty.push_back(entry);
  std::ranges::sort(dirty, {}, [](EntryRef entry) { return entry->slot; });
  while (!writes_.empty()) (void)finish_write(lock, writes_.front());  // failed writes are repeated
  for (const EntryRef entry : dirty) {
    if (!entry->dirty || entry->write) continue;
    if (writes_.size() >= max_writing) note(finish_write(lock, writes_.front()));
    note(begin_write(lock, entry));
  }
  while (!writes_.empty()) note(finish_write(lock, writes_.front()));
  return first;
}

/// Called alone. Completes everything under way for these chunks and writes them; throws the first failure.
void ChunkCache::settle(Lock& lock, const std::function<bool(std::int64_t)>& concerned) {
  for (Entry& entry : entries_) {
    if (entry.reads.empty() || !concerned(entry.slot)) continue;
    lock.unlock();  // a prefetch returns at once meanwhile; no other thread touches entries
    try {
      finish_reads(entry);
    } catch (const std::exception&) {  // the thread that needs the chunk meets the error again
    }
    lock.lock();
  }
  if (std::exception_ptr failure = write_all(lock, concerned)) std::rethrow_exception(failure);
}

void ChunkCache::flush() {
  const Pause pause(*this, [](std::int64_t) { return true; }, false);
}

ChunkCache::Pause::Pause(ChunkCache& cache, const std::function<bool(std::int64_t slot)>& concerned,
                         bool drop)
    : cache_(cache) {
  Lock lock(cache.mutex_);
  cache.enter_alone(lock);
  try {
    cache.settle(lock, concerned);
  } catch (...) {
    cache.alone_ = false;
    cache.changed_.notify_all();
    throw;
  }
  if (!drop) return;
  for (EntryRef next = cache.entries_.begin(); next != cache.entries_.end();) {
    const EntryRef entry = next++;
    if (!concerned(entry->slot)) continue;
    if (entry->awaited > 0)
      entry->valid.reset();
    else
      cache.erase(entry);
  }
  if (!cache.entries_.empty()) return;
  cache.free_.clear();
  cache.arenas_.clear();
  if (cache.options_.account) cache.options_.account(-cache.chunks_ * cache.stride_bytes_);
  cache.chunks_ = 0;
}

bool ChunkCache::Pause::extend(const std::function<bool(std::int64_t slot)>& concerned) {
  Lock lock(cache_.mutex_);
  if (cache_.waiting_ > 0) return false;
  cache_.settle(lock, concerned);
  return true;
}

ChunkCache::Pause::~Pause() {
  const std::lock_guard lock(cache_.mutex_);
  cache_.alone_ = false;
  cache_.changed_.notify_all();
}

}  // namespace outcore::store
