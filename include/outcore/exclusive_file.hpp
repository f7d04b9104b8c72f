// EAF: exclusive access files, byte-addressable scratch files of one process.
// Source: the Exclusive Access Files of the ChemIO project (Nieplocha, Foster, Kendall 1998).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "outcore/api.h"
#include "outcore/memory.hpp"
#include "outcore/page_cache.hpp"
#include "outcore/request.hpp"

namespace outcore::device {
class Engine;
}

namespace outcore::file {

struct ExclusiveFileOptions {
  std::string scratch;  ///< directory; empty: default_scratch()
  bool keep = false;    ///< the file has a name in `scratch` and outlives the process
  device::PageCache page_cache = device::PageCache::automatic;
  std::int64_t expected_bytes =
      0;  ///< hint: larger than free space is Error(ENOSPC) before anything is written
  device::Engine* engine = nullptr;  ///< null: the default engine
  /// With `keep`: the file must exist (else Error(ENOENT)), and writes throw Error(EACCES). The process needs
  /// no right to write the file, and its file system may be read-only. While it is open this way, opening it
  /// for writing throws Error(EACCES).
  bool read_only = false;
};

/// A scratch file of this process. Its name is private to the process: two processes that open "ints" have
/// two files. It vanishes with the process, also when that is killed, unless `keep`. Opening a name again in
/// the same process, also after close, finds the same bytes; use of the page cache, expected size and engine
/// stay those of the first opening. `erase` drops the bytes. close writes a kept file out, at the latest a
/// normal exit does.
///
/// Small sequential requests are combined: written behind and read ahead; a read always sees the writes
/// before it. Threads may make all calls at the same time, except close and erase, which must come last;
/// small blocking calls take turns. Overlapping requests happen in an undefined order unless the caller waits
/// for one before it makes the next. A forked child cannot use the files of its parent (EBADF).
///
/// Errors: EINVAL (name, negative offset), EBADF (closed), ENOENT, EACCES, EROFS (scratch), ENOSPC, EIO.
/// Reading beyond the end gives fewer bytes, as read(2) does. The error of a failed write-behind is thrown by
/// the next write, flush or close; that of a nonblocking write that nobody waited for, by the next flush or
/// close.
class OUTCORE_API ExclusiveFile {
 public:
  explicit ExclusiveFile(const std::string& name, const ExclusiveFileOptions& options = {});
  ~ExclusiveFile();  ///< closes; an error is lost here, so call close()
  ExclusiveFile(ExclusiveFile&&) noexcept;
  ExclusiveFile& operator=(ExclusiveFile&&) noexcept;

  /// Move the bytes of any memory of plain elements, and return how many were moved.
  std::int64_t read(PlainMemory buffer, std::int64_t offset);
  std::int64_t write(ConstPlainMemory buffer, std::int64_t offset);
  /// The memory is the caller's, and is in use until the request is done.
  [[nodiscard]] Request read_async(PlainMemory buffer, std::int64_t offset);
  [[nodiscard]] Request write_async(ConstPlainMemory buffer, std::int64_t offset);
  template <Temporary Range>
  Request write_async(Range&& buffer, std::int64_t offset) = delete;  ///< its memory would be gone

  [[nodiscard]] std::int64_t length();
  [[nodiscard]] bool eof(std::int64_t offset);  ///< true if offset is at or beyond the end
  void truncate(std::int64_t length_bytes);
  void preallocate(std::int64_t size_bytes);  ///< reserves space; the length becomes at least size_bytes
  void flush();                               ///< to stable storage
  void close();                               ///< idempotent; waits for everything under way
  void erase();                               ///< closes and removes the file
  [[nodiscard]] bool closed() const noexcept;
  [[nodiscard]] const std::string& path()
      const noexcept;  ///< as messages name it; on a local disk it is unlinked
  [[nodiscard]] const std::string& name() const noexcept;

  struct OUTCORE_HIDDEN State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace outcore::file
