// A file whose bytes are striped over component files on the disks of all nodes; any process can use it.
// Source: Distant I/O (Foster, Kohr, Krishnaiyer, Mogill 1997), and the global placement model of PASSION.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/sibling.hpp"
#include "device/file.hpp"
#include "dio/stripes/stripes.hpp"
#include "outcore/api.h"
#include "outcore/file_ranges.hpp"
#include "outcore/origin.hpp"
#include "outcore/placement.hpp"
#include "outcore/request.hpp"
#include "outcore/world.hpp"

namespace outcore::dio {

struct StripedFileOptions {
  std::string name = {};                   ///< name in messages
  std::int64_t typical_request_bytes = 0;  ///< sets the stripe; 0: unknown
  std::int64_t expected_bytes = 0;         ///< of the file; Error(ENOSPC) if more than is free. 0: unknown
  bool reserve = false;                    ///< space for `expected_bytes` is reserved at once
  Placement placement = Placement::automatic;
  int components_per_node = 0;  ///< 0: one for each process of the node, at most 8
  device::PageCache page_cache = device::PageCache::automatic;
  /// Memory for copies of data from other nodes, as far as the budget has room; 0: none.
  std::int64_t client_cache_bytes = 0;
  device::Engine* engine = nullptr;  ///< of the components this process opens; null: the default engine
};

/// A scratch file of all processes; it vanishes with them, also when they are killed. Bytes that nobody has
/// written are zeros, however far out they are.
///
/// A component lies on one node and has one owner, a process there. Processes of the node open it themselves.
/// With shared placement, all processes that see it do, unless its file system caches writes in the memory of
/// a host (NFS, SMB). Other processes call the owner, in pieces of about 1 MiB; small pieces travel together.
/// Nothing is cached on the way: a write has reached the component when its request is complete, and a read
/// that begins afterwards sees it, from any process. `flush` puts it on stable storage.
///
/// With a client cache a process keeps copies of blocks that it has read from others. It sees its own writes,
/// but may not see what others have written since its last `settle` or `flush`.
///
/// Reads and writes are not collective; any process and thread may make them at any time. If requests overlap
/// and one of them is a write, their order is undefined. Throws Error: EINVAL (negative offset, or one beyond
/// 64 bits), EBADF (closed), ENOSPC, EIO, and what Request throws, with the rank where it happened.
class OUTCORE_SIBLING StripedFile {
 public:
  /// Collective, with the same options at all processes, except the engine.
  StripedFile(World& world, const StripedFileOptions& options = {});
  /// The options are made in the collective gate: if `make` throws at one process, all throw.
  using Make = std::function<StripedFileOptions()>;
  StripedFile(World& world, const Make& make);
  ~StripedFile();  ///< waits for requests of this process; serves components until the world closes
  StripedFile(StripedFile&&) noexcept;
  StripedFile& operator=(StripedFile&&) noexcept;

  /// Blocking. Ranges of one write must not overlap.
  void read(std::span<const ReadRange> ranges);
  void write(std::span<const WriteRange> ranges);
  /// Nonblocking. The list is needed during the call only, the memory until the request is done. The thread
  /// that waits for a read copies small ranges to their memory.
  [[nodiscard]] Request read_async(std::span<const ReadRange> ranges);
  [[nodiscard]] Request write_async(std::span<const WriteRange> ranges);

  /// Waits for all writes of this process, and throws the error of one that nobody waited for. Forgets the
  /// copies of the client cache. Not collective.
  void settle();
  /// Puts everything written by any process on stable storage. Collective; throws as settle does, at all
  /// processes.
  void flush();
  /// Collective, idempotent: waits for everything and removes the file. Throws as settle does, at all
  /// processes.
  void close();
  [[nodiscard]] bool closed() const noexcept;

  [[nodiscard]] const Stripes& stripes() const noexcept;
  [[nodiscard]] Placement placement() const noexcept;
  [[nodiscard]] int owner(int component) const noexcept;       ///< its process
  [[nodiscard]] bool reachable(int component) const noexcept;  ///< opened by this process itself
  [[nodiscard]] const std::string& directory() const noexcept;
  [[nodiscard]] World& world() const noexcept;
  [[nodiscard]] std::int64_t stored_bytes();  ///< on all disks; collective

  struct OUTCORE_HIDDEN State;
  class OUTCORE_HIDDEN Transfer;

 private:
  Owned<std::shared_ptr<State>> state_;
};

}  // namespace outcore::dio
