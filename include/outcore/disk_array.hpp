// Disk resident arrays: N-dimensional arrays on disk, moved collectively to and from memory, section by
// section.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outcore/api.h"
#include "outcore/box.hpp"
#include "outcore/disk_array_access.hpp"
#include "outcore/element_type.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/codec.hpp"
#include "outcore/global_array.hpp"
#include "outcore/memory.hpp"
#include "outcore/origin.hpp"
#include "outcore/placement.hpp"
#include "outcore/world.hpp"

namespace outcore {

/// Memory of a process for noncollective access, in bytes; taken from the budget as it is needed.
struct DiskArrayCaches {
  /// Of chunks that this process owns; at least two of each component. -1: a sixteenth of the budget, at most
  /// 64 MiB.
  std::int64_t cache_bytes = -1;
  /// Of chunks of other processes that this one has read, for data that is mostly read: they are read again
  /// after `sync`, and after writes of this process. 0: none.
  std::int64_t client_cache_bytes = 0;
};

/// What is opened, and how.
struct DiskArrayOpening {
  std::string path = {};
  bool read_only = true;
  DiskArrayCaches caches = {};  ///< these may differ between processes
  int contained = 0;            ///< as in DiskArrayOptions
};

inline constexpr std::int64_t usual_chunk_group = 16;

struct DiskArrayOptions {
  /// Directory of a persistent array, made here; its parent must exist. "{node}" in it stands for the number
  /// of the node. Empty: scratch, which vanishes with the job, also when it is killed.
  std::string path = {};
  /// Replace a persistent array that is there; else Error(EEXIST). It stays, whole, until the first commit of
  /// the new one, also if that never comes; so there must be room for both.
  bool overwrite = false;
  Placement placement = Placement::automatic;
  Extents chunk = {};                ///< shape of a chunk, the unit of I/O; empty: from the typical section
  Extents typical = {};              ///< shape of a typical section; empty: reads of any, tall and wide alike
  store::CodecOptions codec = {};    ///< of the chunks; a checksum is kept in any case
  std::int64_t expected_bytes = -1;  ///< how much of the array will be written; -1: all of it
  std::string metadata = {};         ///< what the array holds, opaque; persistent arrays keep it
  std::int64_t group = usual_chunk_group;  ///< so many chunks lie together at one owner
  DiskArrayCaches caches = {};
  /// What the array is, in printable ASCII, at most 255 bytes; a persistent array has it from now on. Whoever
  /// keeps several arrays sees by it that each is the one it should be. Empty: a random one.
  std::string identity = {};
  /// The last so many names of `path` must not be symbolic links, as where they lie in a directory that
  /// another party has made: Error(EINVAL). The others may.
  int contained = 0;
};

/// A section of a global array, its axes in any order.
struct Section {
  Box box;
  /// Axis k of the disk array runs along axis order[k] of the section, as with numpy.transpose. Empty: the
  /// same.
  std::vector<int> order = {};
};

/// The methods of DiskArrayAccess are for each process alone. Those that are named here are collective over
/// the world of the array, with the same arguments at all processes but for the memory and boxes of their
/// own; where they differ all throw Error(EINVAL). One thread of a process at a time.
///
/// A write touches what lies in its box and nothing else. When it fails (a full disk, say), elements in the
/// box hold old or new values, those outside are intact, and the array can be used on. Transfers to
/// overlapping boxes happen in the order in which they were begun. A persistent array is what was committed
/// last: a process that is killed at any moment leaves that, never a mixture.
class OUTCORE_API DiskArray : public DiskArrayAccess {
 public:
  /// Error(ENOSPC) if the disks have no room for the whole array.
  DiskArray(World& world, const Extents& shape, ElementType type, const DiskArrayOptions& options = {});
  /// The arguments are made in the collective gate: if `make` throws at one process, all throw.
  using Make = std::function<void(Extents& shape, ElementType& type, DiskArrayOptions& options)>;
  DiskArray(World& world, const Make& make);
  /// Opens a persistent array, made by any number of processes. Error: ENOENT (no array there, or never
  /// committed), EIO (damaged: what and where), ENOTSUP (written by another version or byte order), EBUSY (to
  /// write, while somebody else does).
  [[nodiscard]] static DiskArray open(World& world, const std::string& path, bool read_only = true,
                                      const DiskArrayCaches& caches = {}, int contained = 0);
  /// The arguments are made in the collective gate: if `make` throws at one process, all throw.
  using MakeOpening = std::function<DiskArrayOpening()>;
  [[nodiscard]] static DiskArray open(World& world, const MakeOpening& make);
  /// Closes without committing, and waits for transfers under way; not collective but for those. A persistent
  /// array stays what was committed last: call `close` or `flush`. World::close commits nothing, either.
  ~DiskArray();
  DiskArray(DiskArray&&) noexcept;
  DiskArray& operator=(DiskArray&&) noexcept;

  /// Collective transfers go on in the background, one after another in the order they were begun, without
  /// help of the caller. Their requests are done when every process has done its part, and fail with the same
  /// error at all processes. To wait is not collective.
  ///
  /// Array elements of `box` from the section, or to it. The global array must not be changed (read: used)
  /// until the request is complete; the transfer begins when all processes have called.
  Request write_all_async(const GlobalArray& from, const Section& section, const Box& box);
  Request read_all_async(GlobalArray& to, const Section& section, const Box& box);

  /// Every process moves a block of its own (an empty box: none), in its own memory, with any strides. Blocks
  /// written must not overlap; but if all processes give the same box they are taken to hold the same data.
  /// Memory of another type or shape at one process is Error(EINVAL) at all.
  Request write_all_async(const ConstElements& from, const Box& box);
  Request read_all_async(const Elements& to, const Box& box);
  template <Temporary Range>
  Request write_all_async(Range&& from, const Box& box) = delete;  ///< its memory would be gone
  Request write_all_async(const Strided& from, const Box& box);    ///< the same with memory as bytes
  Request read_all_async(const Strided& to, const Box& box);

  /// Takes the part of a process that cannot make the transfer that the others make: all get the error.
  Request refuse(const Error& error);

  /// Everything written is on stable storage, and is what a persistent array will be found to hold.
  void flush();
  void flush(std::string_view metadata);  ///< with new metadata
  /// With what `make` returns; if it throws at one process, all throw.
  using MakeMetadata = std::function<std::string()>;
  void flush(const MakeMetadata& make);
  /// Commits a persistent array, drops a scratch array; throws the errors of transfers that nobody waited
  /// for. Idempotent.
  void close();
  void drop();    ///< closes without committing; throws nothing. Not collective, but waits for transfers
  void remove();  ///< closes without committing and deletes the files

  /// Opens the array to processes outside of its world, a group that was split from `parent`: any process of
  /// the parent attaches to it by what is returned, which is the same at all processes of the group
  /// (DiskArrayAccess::attach). Collective over the group. Error(EINVAL) if the parent was not prepared.
  [[nodiscard]] std::string share(World& parent);
  /// Makes what the disk arrays of a world need. Collective. Done by the first array, too.
  static void prepare(World& world);
  /// Memory of a process that a collective transfer takes from the budget while it goes on, of an array
  /// without codec, in chunks of the usual size or smaller ones.
  [[nodiscard]] static std::int64_t transfer_bytes(World& world) noexcept;

  [[nodiscard]] int components() const noexcept;          ///< files
  [[nodiscard]] int owner(int component) const noexcept;  ///< the process that has it
  [[nodiscard]] Placement placement() const noexcept;
  [[nodiscard]] const store::CodecOptions& codec() const noexcept;
  [[nodiscard]] const std::string& path() const noexcept;
  [[nodiscard]] const std::string& metadata() const noexcept;
  [[nodiscard]] const std::string& identity() const noexcept;  ///< see DiskArrayOptions
  [[nodiscard]] std::uint64_t generation() const noexcept;     ///< number of the last commit, 0: none
  [[nodiscard]] bool read_only() const noexcept;
  [[nodiscard]] bool closed() const noexcept;
  [[nodiscard]] std::int64_t stored_bytes();  ///< on all disks; collective
  /// The first chunk from number `chunk` on, in row-major order of the grid, with an element that was ever
  /// written; -1 if there is none. Chunks passed over are zero and cost no time. Collective.
  [[nodiscard]] std::int64_t next_written(std::int64_t chunk);

  struct OUTCORE_HIDDEN State;
  explicit DiskArray(std::unique_ptr<State> state);

 private:
  Owned<std::unique_ptr<State>> state_;
};

}  // namespace outcore
