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
  /// For chunks that this process owns; room for at least two of each component. -1: a sixteenth of the
  /// budget, at most 64 MiB.
  std::int64_t cache_bytes = -1;
  /// For copies of chunks that this process has read from others, if data is mostly read: they are read again
  /// after `sync`, and after writes of this process. 0: none.
  std::int64_t client_cache_bytes = 0;
};

/// Arguments of DiskArray::open.
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
  /// Replace a persistent array that exists at `path`; else Error(EEXIST). The old array stays intact until
  /// the first commit of the new one, even if that never comes; so the disk needs room for both.
  bool overwrite = false;
  Placement placement = Placement::automatic;
  Extents chunk = {};    ///< shape of a chunk, the unit of I/O; empty: from the typical section
  Extents typical = {};  ///< shape of a typical section; empty: sections of all shapes, tall and wide
  store::CodecOptions codec = {};    ///< of the chunks, which have a checksum in any case
  std::int64_t expected_bytes = -1;  ///< how much of the array will be written; -1: all of it
  std::string metadata = {};         ///< what the array holds, for its users; persistent arrays store it
  std::int64_t group = usual_chunk_group;  ///< how many consecutive chunks one owner gets
  DiskArrayCaches caches = {};
  /// A name of what the array is: printable ASCII, at most 255 bytes. A persistent array stores it, so a
  /// program that keeps several arrays can check that it has opened the right one. Empty: a random identity.
  std::string identity = {};
  /// How many of the last names of `path` must not be symbolic links: else Error(EINVAL). For names in a
  /// directory that another party has made. The other names may be links.
  int contained = 0;
};

/// A section of a global array, its axes in any order.
struct Section {
  Box box;
  /// Axis k of the disk array runs along axis order[k] of the section, as with numpy.transpose. Empty: the
  /// same order.
  std::vector<int> order = {};
};

/// An N-dimensional array on disk. The methods of DiskArrayAccess are for each process alone. The methods
/// declared here are collective over the world of the array unless they say otherwise. All processes pass the
/// same arguments, except memory and boxes of their own; where they differ, all throw Error(EINVAL). One
/// thread of a process at a time.
///
/// A write changes the elements of its box and nothing else. If it fails (a full disk, say), elements in the
/// box hold old or new values, those outside are intact, and the array can still be used. Transfers to
/// overlapping boxes happen in the order in which they were begun. A persistent array holds its last commit:
/// a process that is killed at any moment leaves that state, never a mixture.
class OUTCORE_API DiskArray : public DiskArrayAccess {
 public:
  /// Error(ENOSPC) if the disks have no room for the whole array.
  DiskArray(World& world, const Extents& shape, ElementType type, const DiskArrayOptions& options = {});
  /// The arguments are made in the collective gate: if `make` throws at one process, all throw.
  using Make = std::function<void(Extents& shape, ElementType& type, DiskArrayOptions& options)>;
  DiskArray(World& world, const Make& make);
  /// Opens a persistent array, made by any number of processes. Error: ENOENT (no array there, or never
  /// committed), EIO (damaged: what and where), ENOTSUP (written by another version or byte order), EBUSY
  /// (opened to write while another job writes).
  [[nodiscard]] static DiskArray open(World& world, const std::string& path, bool read_only = true,
                                      const DiskArrayCaches& caches = {}, int contained = 0);
  /// The arguments are made in the collective gate: if `make` throws at one process, all throw.
  using MakeOpening = std::function<DiskArrayOpening()>;
  [[nodiscard]] static DiskArray open(World& world, const MakeOpening& make);
  /// Closes without a commit, and waits for transfers under way; not collective except for those. A
  /// persistent array keeps its last commit only: call `close` or `flush`. World::close commits nothing,
  /// either.
  ~DiskArray();
  DiskArray(DiskArray&&) noexcept;
  DiskArray& operator=(DiskArray&&) noexcept;

  /// Collective transfers go on in the background, one after another in the order they were begun, without
  /// help of the caller. Their requests are done when every process has done its part, and fail with the same
  /// error at all processes. To wait is not collective.
  ///
  /// Copies the elements of `box` from the section of a global array, or to it. Until the request is
  /// complete, the global array must not be changed (a write) or used (a read). The transfer begins when all
  /// processes have called.
  Request write_all_async(const GlobalArray& from, const Section& section, const Box& box);
  Request read_all_async(GlobalArray& to, const Section& section, const Box& box);

  /// Every process moves a block of its own (an empty box: none), in its own memory, with any strides. Blocks
  /// written must not overlap; but if all processes pass the same box, their memory is assumed to hold the
  /// same data. If the memory of one process has another type or shape, all throw Error(EINVAL).
  Request write_all_async(const ConstElements& from, const Box& box);
  Request read_all_async(const Elements& to, const Box& box);
  template <Temporary Range>
  Request write_all_async(Range&& from, const Box& box) = delete;  ///< its memory would be gone
  Request write_all_async(const Strided& from, const Box& box);    ///< the same with memory as bytes
  Request read_all_async(const Strided& to, const Box& box);

  /// For a process that cannot take part in the transfer that the others make: all processes get the error.
  Request refuse(const Error& error);

  /// Puts everything written on stable storage, and commits a persistent array.
  void flush();
  void flush(std::string_view metadata);  ///< with new metadata
  /// With the metadata that `make` returns; if it throws at one process, all throw.
  using MakeMetadata = std::function<std::string()>;
  void flush(const MakeMetadata& make);
  /// Commits a persistent array, drops a scratch array; throws the errors of transfers that nobody waited
  /// for. Idempotent.
  void close();
  void drop();    ///< closes without committing; throws nothing. Not collective, but waits for transfers
  void remove();  ///< closes without committing and deletes the files

  /// Makes the array accessible outside its world, a group that was split from `parent`. Returns a handle,
  /// the same at all processes of the group, by which any process of the parent attaches to the array
  /// (DiskArrayAccess::attach). Collective over the group. Error(EINVAL) if the parent was not prepared.
  [[nodiscard]] std::string share(World& parent);
  /// Prepares a world for disk arrays. Collective. The first array does it, too.
  static void prepare(World& world);
  /// Bytes that a collective transfer takes from the budget of each process while it runs, for an array
  /// without codec whose chunks have at most the usual size.
  [[nodiscard]] static std::int64_t transfer_bytes(World& world) noexcept;

  [[nodiscard]] int components() const noexcept;          ///< files
  [[nodiscard]] int owner(int component) const noexcept;  ///< the process that has the file
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
