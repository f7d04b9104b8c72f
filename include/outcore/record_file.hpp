// Records of any size in a shared file; a record may grow or shrink when it is rewritten.
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
  std::int64_t typical_record_bytes = 0;  ///< sets the stripe, and the space that a process takes at once
  Placement placement = Placement::automatic;
  device::PageCache page_cache = device::PageCache::automatic;
  device::Engine* engine = nullptr;  ///< null: the default engine
};

/// A scratch file of numbered records that all processes of a world share. Each record has any size (a block
/// of a compressed vector, say). Any process writes and reads any record at any time, without help of the
/// others. The file vanishes as a SharedFile does.
///
/// Records are atomic. A `get` returns the data of one `put`: the last one that was complete when the get
/// began, or one made meanwhile, never a mixture. If two processes put the same record at once, the put that
/// ends last wins. A put that fails (a full disk, say) leaves the record as it was. A nonblocking put takes
/// effect, and is seen by all, when its request is waited for, or in `sync`.
///
/// There is no lock and no server. A process writes a new version into its own space, which it takes in
/// extents from a common counter. Then it changes the directory by a compare-and-swap. The directory has
/// eight bytes for each record in one-sided memory, those of record i at process i % size. The process that
/// replaced an old version uses its space again. Each record has a checksum: it tells a reader that the space
/// was used again meanwhile, and the reader looks the record up anew. A record has up to 1 TiB, a file 64
/// TiB.
///
/// Errors: EINVAL (number out of range, options), ENOENT (no such record), EMSGSIZE (longer than the buffer),
/// EFBIG (beyond the hard limit), EBADF (closed), ENOSPC, EIO (also: damaged). Any thread may make calls that
/// are not collective.
class OUTCORE_API RecordFile {
 public:
  /// Collective, with the same arguments at all processes, except the engine. The world must outlive the
  /// file.
  RecordFile(World& world, const std::string& name, const RecordFileOptions& options);
  using Make = std::function<void(std::string& name, RecordFileOptions& options)>;
  RecordFile(World& world, const Make& make);
  ~RecordFile();  ///< as SharedFile
  RecordFile(RecordFile&&) noexcept;
  RecordFile& operator=(RecordFile&&) noexcept;

  /// Writes a record: the bytes of any memory of plain elements.
  void put(std::int64_t record, ConstPlainMemory data);
  [[nodiscard]] std::vector<std::byte> get(std::int64_t record);
  /// Reads a record as elements of type T, which must be the type that was put: a record stores no type.
  /// Error(EINVAL) if its size is not a multiple of sizeof(T).
  template <Plain T>
  [[nodiscard]] std::vector<T> get(std::int64_t record) {
    const std::vector<std::byte> bytes = get(record);
    check_size(record, bytes.size(), sizeof(T));
    std::vector<T> elements(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
    return elements;
  }
  /// Reads a record into memory that is long enough; returns its size. The rest of the memory may be changed.
  std::int64_t get(std::int64_t record, PlainMemory buffer);
  /// The memory must stay until the request is complete.
  [[nodiscard]] Request put_async(std::int64_t record, ConstPlainMemory data);
  template <Temporary Range>
  Request put_async(std::int64_t record, Range&& data) = delete;  ///< its memory would be gone
  [[nodiscard]] Request get_async(std::int64_t record, PlainMemory buffer);

  [[nodiscard]] std::optional<std::int64_t> size(std::int64_t record);  ///< in bytes; null: no such record
  /// A length of a buffer that is enough for a record: at least its size, and at most a ninth and 64 bytes
  /// more. Null if there is no such record. Reads nothing from the disk.
  [[nodiscard]] std::optional<std::int64_t> capacity(std::int64_t record);
  void erase(std::int64_t record);  ///< does nothing if there is no such record

  /// Completes all puts of this process and makes them visible to all; throws the error of a put that nobody
  /// waited for.
  void sync();
  void flush();  ///< sync of all processes, to stable storage; collective
  void close();  ///< collective, idempotent; the records are gone
  [[nodiscard]] bool closed() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] std::int64_t records() const noexcept;
  [[nodiscard]] std::int64_t taken_bytes();  ///< space taken by all processes together; not collective
  [[nodiscard]] World& world() const noexcept;

  struct OUTCORE_HIDDEN State;
  class OUTCORE_HIDDEN Transfer;

 private:
  static void check_size(std::int64_t record, std::size_t size_bytes, std::size_t element_bytes);
  Owned<std::shared_ptr<State>> state_;
};

}  // namespace outcore::file
