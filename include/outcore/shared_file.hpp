// SF: shared files, byte-addressable scratch files of all processes.
// Source: the Shared Files of the ChemIO project (Nieplocha, Foster, Kendall 1998).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "outcore/api.h"
#include "outcore/file_ranges.hpp"
#include "outcore/memory.hpp"
#include "outcore/origin.hpp"
#include "outcore/page_cache.hpp"
#include "outcore/placement.hpp"
#include "outcore/request.hpp"
#include "outcore/world.hpp"

namespace outcore::device {
class Engine;
}
namespace outcore::dio {
class StripedFile;
}

namespace outcore::file {

struct SharedFileOptions {
  std::int64_t hard_limit_bytes = 0;       ///< a write beyond it is Error(EFBIG). 0: none
  std::int64_t soft_limit_bytes = 0;       ///< expected size; Error(ENOSPC) if more than is free. 0: unknown
  bool reserve = false;                    ///< space for the soft limit is reserved at once
  std::int64_t typical_request_bytes = 0;  ///< sets the stripe. 0: unknown
  Placement placement = Placement::automatic;
  int components_per_node = 0;  ///< files on each node; 0: one for each process, at most 8
  device::PageCache page_cache = device::PageCache::automatic;
  /// Memory of this process for copies of data from other nodes; see sync. 0: none.
  std::int64_t client_cache_bytes = 0;
  device::Engine* engine = nullptr;  ///< null: the default engine
};

/// A scratch file of all processes of a world: created and closed by all together, read and written by any of
/// them at any time, at any offset, in any size, without help of the others. It vanishes with the job, also
/// when that is killed. Bytes below the end that nobody has written are zeros.
///
/// The end of the file is the highest byte that any process has begun to write; it never goes back. A writer
/// announces a new end before its write begins, and a reader that would pass the end it knows asks the other
/// processes first. So a process that learned of a write (by a barrier or a message) can read its bytes.
/// Reading beyond the end is Error(EINVAL), which names offset, size and end. If a write fails, the bytes of
/// its range are old, new or zeros.
///
/// A write is visible to all when its request is complete: after a wait for it, or after `sync`. No process
/// keeps bytes in memory, unless it has a client cache: then it must call `sync` before it reads bytes again
/// that others have written meanwhile. If requests overlap and one of them is a write, their order is
/// undefined. Any thread may make calls that are not collective. The buffer of a request belongs to the
/// library until the request is complete, even if the request object is destroyed before.
///
/// Errors: EINVAL (name, limits, negative offset, beyond the end), EFBIG (beyond the hard limit), EBADF
/// (closed), ENOSPC, EIO; messages name the rank where it happened. The error of a nonblocking request is
/// thrown by its wait or test; if nobody waited for a write, by the next sync, flush or close.
class OUTCORE_API SharedFile {
 public:
  /// Collective, with the same arguments at all processes, except client cache and engine. The world must
  /// outlive the file.
  SharedFile(World& world, const std::string& name, const SharedFileOptions& options = {});
  /// The arguments are made in the collective gate: if `make` throws at one process, all throw.
  using Make = std::function<void(std::string& name, SharedFileOptions& options)>;
  SharedFile(World& world, const Make& make);
  /// Not collective: waits for requests of this process. The other processes can use the part on its disk
  /// until the world closes. An error is lost here, so call close().
  ~SharedFile();
  SharedFile(SharedFile&&) noexcept;
  SharedFile& operator=(SharedFile&&) noexcept;

  /// Any memory of plain elements, moved as its bytes.
  void read(PlainMemory buffer, std::int64_t offset);
  void write(ConstPlainMemory buffer, std::int64_t offset);
  [[nodiscard]] Request read_async(PlainMemory buffer, std::int64_t offset);
  [[nodiscard]] Request write_async(ConstPlainMemory buffer, std::int64_t offset);
  template <Temporary Range>
  Request write_async(Range&& buffer, std::int64_t offset) = delete;  ///< its memory would be gone

  /// Lists of byte ranges, as one request. Small ranges that lie close together are read together, with the
  /// bytes between them. The ranges of one write must not overlap.
  using ReadRange = outcore::ReadRange;
  using WriteRange = outcore::WriteRange;
  void read(std::span<const ReadRange> ranges);
  void write(std::span<const WriteRange> ranges);
  [[nodiscard]] Request read_async(std::span<const ReadRange> ranges);
  [[nodiscard]] Request write_async(std::span<const WriteRange> ranges);

  [[nodiscard]] std::int64_t length();  ///< the end of the file, as it is now; not collective
  /// Makes everything that this process has written visible to all, and what others have written visible to
  /// it. Not collective.
  void sync();
  void flush();  ///< puts everything written by any process on stable storage; collective
  void close();  ///< collective, idempotent; the bytes are gone
  /// As close, but throws no errors of writes: the caller does not want the bytes.
  void destroy();

  [[nodiscard]] bool closed() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] std::int64_t hard_limit_bytes() const noexcept;  ///< 0: none
  [[nodiscard]] const dio::StripedFile& stored() const noexcept;
  [[nodiscard]] World& world() const noexcept;

  struct OUTCORE_HIDDEN State;

 private:
  Owned<std::unique_ptr<State>> state_;
};

}  // namespace outcore::file
