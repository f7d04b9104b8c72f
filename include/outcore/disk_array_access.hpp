// Noncollective access to disk arrays: any process moves any section, without help of the others. Source:
// noncollective disk resident arrays, after GPC-IO; the owners of chunks serve requests.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "outcore/api.h"
#include "outcore/box.hpp"
#include "outcore/element_type.hpp"
#include "outcore/error.hpp"
#include "outcore/memory.hpp"
#include "outcore/origin.hpp"
#include "outcore/request.hpp"
#include "outcore/world.hpp"

namespace outcore {

namespace dio {
class ChunkClient;
}  // namespace dio

/// Noncollective access to a disk array. Every chunk has one owner, which the layout determines. A process
/// sends its requests to the owners, in portions of some MiB, several at a time; the owners apply them to
/// their caches. Any thread of any process may do so at any time; no other process has to call anything. The
/// order of operations:
///
/// - Operations on one chunk are atomic: the owner applies them one after another, in any order. So if two
///   processes accumulate into the same elements, both contributions are added, whatever the type. A box that
///   lies in several chunks is several operations.
/// - When a put or accumulate is complete, every get that begins afterwards sees it, at any process. The
///   exception is a process with a client cache (`client_cache_bytes`), which sees it after its next `sync`.
/// - A collective transfer of the array sees what was complete before this process called it, and gets that
///   begin after it is complete see what it wrote. While it is under way, owners let noncollective operations
///   wait; at each owner, they come before or after it.
/// - Nothing is on stable storage before DiskArray::flush, which is collective.
///
/// Errors are thrown at the process that made the request: EINVAL (a box outside the array), EROFS, EBADF
/// (the array was closed, here or at an owner), ENOSPC and EIO of the owner's disk, ENOMEM. If a put fails,
/// elements in its box hold old or new values. If an owner fails to write its cache to disk, nothing is lost:
/// it keeps the data and tries again, and flush and close throw if it still fails. If a put or accumulate
/// failed and nobody waited for it, the next `sync`, flush or close throws its error.
class OUTCORE_API DiskArrayAccess {
 public:
  explicit DiskArrayAccess(std::shared_ptr<dio::ChunkClient> client) noexcept;
  ~DiskArrayAccess();
  DiskArrayAccess(DiskArrayAccess&&) noexcept;
  DiskArrayAccess& operator=(DiskArrayAccess&&) noexcept;

  /// Attaches to an array of another group of processes, by the handle that its `DiskArray::share` returned.
  /// `world` is the one that the array was shared with. Not collective. `client_cache_bytes`: memory for
  /// copies of chunks, as DiskArrayCaches::client_cache_bytes. Error(EINVAL) for an invalid handle, or for a
  /// world that does not have the processes of the array.
  [[nodiscard]] static DiskArrayAccess attach(World& world, const std::string& handle,
                                              std::int64_t client_cache_bytes = 0);

  [[nodiscard]] World& world() const noexcept;
  [[nodiscard]] const Extents& shape() const noexcept;
  [[nodiscard]] const Extents& chunk() const noexcept;
  [[nodiscard]] ElementType type() const noexcept;

  /// A get is done when its data is here; a put or accumulate is done when its data is at the owners. Then
  /// the memory may be reused. A request fails with the first error of any process.
  ///
  /// `memory` is a range with all elements of the slices (or box) in C order, or an mdspan of their shape. It
  /// is in use until the request is done.
  [[nodiscard]] Request get_async(const Slices& slices, const Elements& memory) const;
  [[nodiscard]] Request put_async(const Slices& slices, const ConstElements& memory);
  /// Adds alpha times the memory. Types of 4 bytes and more.
  [[nodiscard]] Request accumulate_async(const Slices& slices, const ConstElements& memory, Factor alpha = 1);
  template <Temporary Range>
  Request put_async(const Slices& slices, Range&& memory) = delete;  ///< its memory would be gone
  template <Temporary Range>
  Request accumulate_async(const Slices& slices, Range&& memory,
                           Factor alpha = 1) = delete;  ///< its memory would be gone
  /// The same, and wait.
  void get(const Slices& slices, const Elements& memory) const;
  void put(const Slices& slices, const ConstElements& memory);
  void accumulate(const Slices& slices, const ConstElements& memory, Factor alpha = 1);

  /// The same with memory as bytes: element (i0, i1, ...) of the box lies at the sum of
  /// memory.stride_bytes[k] * i_k. `alpha` is one element of the array's type (null: one).
  [[nodiscard]] Request get_async(const Slices& slices, const Strided& memory) const;
  [[nodiscard]] Request put_async(const Slices& slices, const Strided& memory);
  [[nodiscard]] Request accumulate_async(const Slices& slices, const Strided& memory, const void* alpha);
  void get(const Slices& slices, const Strided& memory) const;
  void put(const Slices& slices, const Strided& memory);
  void accumulate(const Slices& slices, const Strided& memory, const void* alpha);

  /// Hints that boxes will be read soon: their owners begin to read them into their caches, as far as there
  /// is room. Returns at once; there is nothing to wait for.
  void prefetch(std::span<const Box> boxes) const;

  /// Completes the puts and accumulates of this process and makes them visible to all, and makes those of the
  /// others visible here. Throws the first error of a put that nobody has waited for. Not collective.
  void sync();

 protected:
  DiskArrayAccess() noexcept;
  Owned<std::shared_ptr<dio::ChunkClient>> client_;
};

}  // namespace outcore
