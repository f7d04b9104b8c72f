// Files at the device level: ELIO, elementary I/O at an offset.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/sibling.hpp"
#include "outcore/api.h"
#include "outcore/error.hpp"
#include "outcore/origin.hpp"
#include "outcore/page_cache.hpp"
#include "outcore/request.hpp"
#include "outcore/trace.hpp"

namespace outcore::device {

class Engine;

struct OpenOptions {
  bool create = true;      ///< create if missing; false: the file must exist
  bool exclusive = false;  ///< with create: it must not exist yet, or Error(EEXIST)
  bool truncate = false;
  bool read_only = false;
  PageCache page_cache = PageCache::automatic;
  std::int64_t expected_bytes = 0;  ///< hint, 0: unknown
  /// Nobody else writes the file while it is open. Then space on the disk may be reserved ahead of writes;
  /// close gives back space beyond the end of the file.
  bool sole_writer = false;
  Engine* engine = nullptr;        ///< null: default_engine()
  bool unlink_after_open = false;  ///< the file loses its name at once, and vanishes with its last user
  /// A descriptor of the directory of the file, needed during the opening; -1: none. With it the last name of
  /// `path` is looked up there, and the file counts as one that another party may have made. Error(EINVAL)
  /// then for anything but a regular file, such as a symbolic link. If the file is opened for writing,
  /// Error(EINVAL) also if it has a second name (a hard link), or if it belongs to somebody else and lies in
  /// a directory where everybody may make files.
  int directory = -1;
};

/// An open file. All operations are thread-safe with one another (as pread/pwrite are); `close` must come
/// last. Offsets and sizes are bytes; a negative one is Error(EINVAL); use after close, or in a forked child,
/// is Error(EBADF). A list of buffers makes one request on consecutive bytes of the file.
class OUTCORE_SIBLING File {
 public:
  File(std::string path, const OpenOptions& options = {});
  ~File();  ///< closes; an error that was never delivered is lost here, so call close()
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;

  /// Blocking. Read returns fewer bytes than asked for only at the end of the file; an offset beyond the end
  /// gives 0. Write moves everything or throws (ENOSPC says how much is free). Reported in the device layer
  /// of the trace, and in the layer of `asker` if that is another one.
  std::int64_t read(std::span<std::byte> buffer, std::int64_t offset, const trace::Asker& asker = {});
  std::int64_t read(std::span<const iovec> list, std::int64_t offset);
  std::int64_t write(std::span<const std::byte> buffer, std::int64_t offset, const trace::Asker& asker = {});
  std::int64_t write(std::span<const iovec> list, std::int64_t offset);

  /// Whether the page cache holds the range, so that a read does not wait (except for pages dropped just
  /// now). False also where the kernel cannot tell, beyond the end of the file, and for PageCache::direct.
  [[nodiscard]] bool resident(std::int64_t offset, std::int64_t size_bytes);
  /// Whether a write would be a copy into the page cache, as far as is known without asking the system.
  [[nodiscard]] bool write_is_copy(std::int64_t offset, std::size_t size_bytes) const;

  /// Copies a whole small range from the page cache. Returns false if the range is large, if a part of it is
  /// not in the cache, or if the file is not read through the cache. Never waits for the disk. Reported as a
  /// nonblocking read.
  [[nodiscard]] bool copy_cached(std::span<std::byte> buffer, std::int64_t offset,
                                 const trace::Asker& asker = {});

  /// Nonblocking: return within microseconds, proceed without further calls, complete at the request.
  /// Reported as the blocking ones are.
  [[nodiscard]] Request read_async(std::span<std::byte> buffer, std::int64_t offset,
                                   const trace::Asker& asker = {});
  [[nodiscard]] Request read_async(std::span<const iovec> list, std::int64_t offset);
  [[nodiscard]] Request write_async(std::span<const std::byte> buffer, std::int64_t offset,
                                    const trace::Asker& asker = {});
  [[nodiscard]] Request write_async(std::span<const iovec> list, std::int64_t offset);

  /// The same without a request: once complete, `then` is called with the bytes moved or the error, which is
  /// reported to nobody else. A thread of the engine, or this one, calls it: it must neither block nor throw.
  using Then = std::function<void(std::int64_t moved_bytes, const Error* error)>;
  void read_async(std::span<const iovec> list, std::int64_t offset, Then then);
  void write_async(std::span<const iovec> list, std::int64_t offset, Then then);

  void preallocate(std::int64_t size_bytes);  ///< reserves space; the length becomes at least size_bytes
  void truncate(std::int64_t length_bytes);
  /// Reserves space for a range without a change of length or content. Returns false, and does nothing, if
  /// the file system cannot. Throws Error(ENOSPC) as preallocate does.
  bool reserve(std::int64_t offset, std::int64_t size_bytes);
  /// Gives the space of a range back; the range then reads as zeros, and the length stays. Returns false, and
  /// does nothing, if the file system cannot.
  bool punch(std::int64_t offset, std::int64_t size_bytes);
  [[nodiscard]] std::int64_t length() const;
  [[nodiscard]] std::int64_t space_bytes() const;     ///< space on the disk; holes take none
  [[nodiscard]] bool eof(std::int64_t offset) const;  ///< true if offset is at or beyond the end
  /// Waits for all writes under way, puts them on stable storage, and throws the error of a failed write
  /// that nobody waited for.
  void flush();
  void settle();  ///< as flush, without syncing
  void close();   ///< waits for everything under way; idempotent; throws as flush does, without syncing

  [[nodiscard]] const std::string& path() const noexcept;
  [[nodiscard]] bool direct_available() const noexcept;  ///< the file system accepts direct I/O

  struct OUTCORE_HIDDEN State;

 private:
  Owned<std::shared_ptr<State>> state_;
};

OUTCORE_SIBLING void remove_file(const std::string& path);  ///< throws Error(ENOENT) if there is none

/// The file system under a path (the path itself or its nearest existing parent).
struct FileSystem {
  std::string type;  ///< "ext4", "xfs", "tmpfs", "nfs", "lustre", ... or "0x..." if unknown
  std::int64_t total_bytes = 0;
  std::int64_t free_bytes = 0;           ///< available to this user
  bool network = false;                  ///< shared by several machines
  bool memory = false;                   ///< lives in RAM
  std::int32_t direct_memory_align = 0;  ///< 0: no direct I/O here
  std::int32_t direct_offset_align = 0;
};
[[nodiscard]] OUTCORE_SIBLING FileSystem file_system(const std::string& path);

}  // namespace outcore::device
