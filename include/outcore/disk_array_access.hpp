// Noncollective access to disk arrays: any process moves any section, without the others.
// Source: noncollective disk resident arrays, after GPC-IO; the owners of chunks do what is asked of them.
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

/// Every chunk of a disk array has one owner, which follows from the layout. What a process asks for goes to
/// the owners, in portions of some MiB, several at a time, and they apply it to their caches. Any process,
/// any thread, at any time; nobody else has to call anything. What is ordered with what:
///
/// - An operation on one chunk is applied as a whole, in some order with those of others: elements of a chunk
///   that two processes accumulate into add up, whatever the type. A box in several chunks is several
///   operations.
/// - When a put or accumulate is complete, every get that begins afterwards sees it, at any process, but for
///   caches of other processes (`client_cache_bytes`): these are right again after `sync` there.
/// - Collective transfers of the array see what was complete before this process called them, and gets that
///   begin after they are complete see what they wrote. While a transfer is under way its owners let
///   noncollective operations wait; those are before or after it, at each owner.
/// - Nothing is on stable storage before DiskArray::flush, which is collective.
///
/// Errors come to the one who asked: EINVAL for a box outside, EROFS, EBADF if the array was closed, here or
/// at an owner, ENOSPC and EIO of the owner's disk, ENOMEM. When a put fails, elements in its box hold old or
/// new values. A write behind that fails loses nothing: the owner keeps the data and tries again; flush and
/// close throw if it still cannot. A put or accumulate that failed and that nobody waited for fails the next
/// `sync`, flush or close.
class OUTCORE_API DiskArrayAccess {
 public:
  explicit DiskArrayAccess(std::shared_ptr<dio::ChunkClient> client) noexcept;
  ~DiskArrayAccess();
  DiskArrayAccess(DiskArrayAccess&&) noexcept;
  DiskArrayAccess& operator=(DiskArrayAccess&&) noexcept;

  /// An array of another group of processes, from what its `DiskArray::share` returned. `world` is the one
  /// that it was shared with. Not collective. `client_cache_bytes`: memory for copies of chunks, as
  /// DiskArrayCaches::client_cache_bytes. Error(EINVAL) for bytes that are no handle, or for a world that
  /// cannot have them.
  [[nodiscard]] static DiskArrayAccess attach(World& world, const std::string& handle,
                                              std::int64_t client_cache_bytes = 0);

  [[nodiscard]] World& world() const noexcept;
  [[nodiscard]] const Extents& shape() const noexcept;
  [[nodiscard]] const Extents& chunk() const noexcept;
  [[nodiscard]] ElementType type() const noexcept;

  /// A request is done when what was got is here, or what was put is at its owners, so that its memory may be
  /// reused. It fails with the first error, of whatever process.
  ///
  /// A box, or slices: all elements in C order, or an mdspan of their shape. The memory is in use until the
  /// request is done.
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

  /// What this process has put and accumulated is complete and visible to all, and what the others have is
  /// visible here. Throws the first error of a put that nobody has waited for. Not collective.
  void sync();

 protected:
  DiskArrayAccess() noexcept;
  Owned<std::shared_ptr<dio::ChunkClient>> client_;
};

}  // namespace outcore
