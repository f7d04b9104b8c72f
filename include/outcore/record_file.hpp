// Records of any size in a shared file, that may grow or shrink when they are rewritten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outcore/api.h"
#include "outcore/memory.hpp"
#include "outcore/origin.hpp"
#include "outcore/page_cache.hpp"
#include "outcore/placement.hpp"
#include "outcore/request.hpp"
#include "outcore/world.hpp"

namespace outcore::device {
class Engine;
}

namespace outcore::file {

struct RecordFileOptions {
  std::int64_t records = 0;               ///< they are numbered 0 to records - 1
  std::int64_t hard_limit_bytes = 0;      ///< of the file; 0: none
  std::int64_t soft_limit_bytes = 0;      ///< as for shared files
  std::int64_t typical_record_bytes = 0;  ///< sets the stripe, and what a process takes at once. 0: unknown
  Placement placement = Placement::automatic;
  device::PageCache page_cache = device::PageCache::automatic;
  device::Engine* engine = nullptr;  ///< null: the default engine
};

/// Numbered records of all processes of a world, of any size each: blocks of compressed vectors, say. Any
/// process writes and reads any record at any time, without help of the others. A scratch file, as SharedFile
/// is.
///
/// A record is a whole: a `get` returns what one `put` wrote, of one that was complete when the get began or
/// of one made meanwhile, never a mixture. If two processes put the same record at once the one that ends
/// last stays. A put that fails (a full disk, say) leaves the record as it was. A nonblocking put takes
/// effect, and is seen by all, when its request is waited for, or in `sync`.
///
/// There is no lock and nobody to ask: a process writes new versions into space of its own, which it takes in
/// extents from a common counter, and the directory, eight bytes for each record in one-sided memory, record
/// i at process i % size, is changed by a compare-and-swap. Space of old versions is used again by the
/// process that replaced them. Records carry a checksum, by which a reader knows that the place it reads has
/// been used again meanwhile, and looks anew. Records of up to 1 TiB, 64 TiB in all.
///
/// Errors: EINVAL (number out of range, options), ENOENT (no such record), EMSGSIZE (longer than the buffer),
/// EFBIG (beyond the hard limit), EBADF (closed), ENOSPC, EIO (also: damaged). Any thread may call what is
/// not collective.
class OUTCORE_API RecordFile {
 public:
  /// Collective, with the same arguments at all processes but for the engine. The world must outlive it.
  RecordFile(World& world, const std::string& name, const RecordFileOptions& options);
  using Make = std::function<void(std::string& name, RecordFileOptions& options)>;
  RecordFile(World& world, const Make& make);
  ~RecordFile();  ///< as SharedFile
  RecordFile(RecordFile&&) noexcept;
  RecordFile& operator=(RecordFile&&) noexcept;

  /// Any memory of plain elements, kept as its bytes.
  void put(std::int64_t record, ConstPlainMemory data);
  [[nodiscard]] std::vector<std::byte> get(std::int64_t record);
  /// As elements, of the type that they were put as: a record keeps none. Error(EINVAL) if its size is none
  /// of so many elements.
  template <Plain T>
  [[nodiscard]] std::vector<T> get(std::int64_t record) {
    const std::vector<std::byte> bytes = get(record);
    check_size(record, bytes.size(), sizeof(T));
    std::vector<T> elements(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
    return elements;
  }
  /// Into memory that is long enough; returns the size of the record. What lies behind it may be changed.
  std::int64_t get(std::int64_t record, PlainMemory buffer);
  /// The memory must stay until the request is complete.
  [[nodiscard]] Request put_async(std::int64_t record, ConstPlainMemory data);
  template <Temporary Range>
  Request put_async(std::int64_t record, Range&& data) = delete;  ///< its memory would be gone
  [[nodiscard]] Request get_async(std::int64_t record, PlainMemory buffer);

  [[nodiscard]] std::optional<std::int64_t> size(std::int64_t record);  ///< in bytes; null: there is none
  /// Null if there is none, else at least the size of the record, and at most a ninth and 64 bytes more: how
  /// long a buffer must be. Reads nothing from the disk.
  [[nodiscard]] std::optional<std::int64_t> capacity(std::int64_t record);
  void erase(std::int64_t record);  ///< nothing if there is none

  /// All puts of this process are complete and visible to all; throws the error of one that nobody waited
  /// for.
  void sync();
  void flush();  ///< sync of all, and on stable storage; collective
  void close();  ///< collective, idempotent; the records are gone
  [[nodiscard]] bool closed() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] std::int64_t records() const noexcept;
  [[nodiscard]] std::int64_t taken_bytes();  ///< of the file, by all processes together; not collective
  [[nodiscard]] World& world() const noexcept;

  struct OUTCORE_HIDDEN State;
  class OUTCORE_HIDDEN Transfer;

 private:
  static void check_size(std::int64_t record, std::size_t size_bytes, std::size_t element_bytes);
  Owned<std::shared_ptr<State>> state_;
};

}  // namespace outcore::file
