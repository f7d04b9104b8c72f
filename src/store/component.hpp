// Components: the files that hold the chunks of a disk array, each owned by one process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/file.hpp"
#include "outcore/extend/engine.hpp"
#include "outcore/request.hpp"
#include "store/geometry.hpp"
#include "store/slot_table.hpp"

namespace outcore::store {

struct ComponentOptions {
  /// Direct by default: chunks are large and aligned, and any cache is above this layer.
  device::PageCache page_cache = device::PageCache::direct;
  device::Engine* engine = nullptr;  ///< null: default_engine()
  bool read_only = false;
  int directory = -1;              ///< as device::OpenOptions::directory
  bool unlink_after_open = false;  ///< create: the file has no name, and vanishes with the process
  bool preallocate = false;        ///< create: reserve the space of all slots (of one side), or Error(ENOSPC)
  /// With shadow and without a codec: while the disk has several times as much free space, keep the space
  /// that a commit leaves unused for the next version, because that is faster to write than new space.
  bool keep_space = false;
  /// Called before the table takes memory (if it throws, none is taken), and with a negative number when
  /// memory is given back.
  std::function<void(std::int64_t bytes)> account{};
  /// The user's name of a slot, for error messages: "chunk 17 [0:128, 256:384]".
  std::function<std::string(std::int64_t slot)> describe{};
};

/// A file of slots, and the table of their contents. Slots that were never written read as zeros and cost no
/// I/O.
///
/// Any thread may make and await requests, several at a time, as long as no two of them concern the same
/// slot, unless both read. Methods for the whole component (flush, encode_table, committed, close) must not
/// be called while requests are under way.
///
/// Guarantees when writes fail or the process dies:
/// - A write takes effect when it has been waited for. Until then the table does not change; for slots whose
///   transfer failed, it never does. In a write of several slots, some may succeed.
/// - With Geometry::shadow, slots of the committed state are never overwritten: their content and the table
///   that was encoded with it stay valid, whatever happens to later writes, until `committed` is called. The
///   same holds for earlier states as long as `is_read` reports a reader. The file grows for that.
/// - The space of a failed write is given back at once, unless the table refers to it.
/// - A slot that is overwritten in place (without shadow, or written again before the commit) may hold some
///   blocks of either version after a failure. A read gives the earlier content if all of it is left, and
///   Error(EIO) else, never a mixture: the checksums tell. Overwriting in place needs no new space, so a full
///   disk (ENOSPC) does not destroy the earlier content, except on copy-on-write file systems.
/// - Nothing is on stable storage before `flush`.
class Component {
 public:
  /// A new file without content. Error(EEXIST) if there is one of that name.
  [[nodiscard]] static Component create(const std::string& path, const Geometry& geometry,
                                        const ComponentOptions& options = {});
  /// An existing file with the table that describes its committed state. Error(EIO) if the file is shorter or
  /// longer than its table allows; kept states may have left it more sides.
  [[nodiscard]] static Component open(const std::string& path, SlotTable table,
                                      const ComponentOptions& options = {});
  ~Component();  ///< closes; an error is lost here, so call close()
  Component(Component&&) noexcept;
  Component& operator=(Component&& other) noexcept;

  [[nodiscard]] const Geometry& geometry() const noexcept;
  [[nodiscard]] const SlotTable& table() const noexcept;
  [[nodiscard]] const std::string& path() const noexcept;

  /// The slots whose next write would go to a new place.
  struct Former {
    std::int64_t first_slot = 0, count = 0;
    std::vector<SlotTable::Entry> entries;  ///< empty: the slots were never written
  };
  [[nodiscard]] std::vector<Former> former(std::int64_t first_slot, std::int64_t count) const;
  /// After a larger operation has failed: restores the earlier state of slots, the latest first. No request
  /// may be under way for them. Then `give_back` can free their space.
  void restore(std::span<const Former> former) noexcept;
  /// Gives back disk space of slots that was reserved or written and to which the table does not refer. Space
  /// that cannot be given back stays until the next commit.
  void give_back(std::int64_t first_slot, std::int64_t count) noexcept;

  /// Reserves space on the disk for slots that are about to be written without a codec, in contiguous pieces
  /// of 1 MiB or more: their writes are then faster. Does nothing if the file system cannot. If it fails,
  /// space that it has reserved stays until `give_back`. Waits for requests under way. Throws Error: ENOSPC,
  /// EINVAL for slots that are not there.
  void reserve(std::int64_t first_slot, std::int64_t count);

  /// Writes and reads of consecutive slots. The memory must stay valid, and untouched, until the request has
  /// been waited for, or its last copy is destroyed, which waits, too. The thread that waits for a read
  /// verifies and decompresses the data: damage is Error(EIO), naming file, slot, offset, and both checksums.
  ///
  /// In memory, as on disk, slots lie geometry().stride_bytes() apart, and the memory has the size of `count`
  /// strides. Aligned to 4096 it is read and written in place: take it from device::Buffer. Checksums are
  /// computed, and chunks compressed, within this call, while the first part of the data is on its way.
  /// Zeroes the bytes between slot_bytes and the stride. Throws Error: EINVAL for slots that do not exist or
  /// memory of another size, EBADF after close or if opened read-only, ENOSPC, ENOMEM, EBUSY if kept states
  /// of the slot take all sides (SlotTable::max_sides).
  [[nodiscard]] Request write_async(std::int64_t first_slot, std::int64_t count, std::span<std::byte> memory);
  /// As write_async. Bytes between slot_bytes and the stride are of no meaning.
  [[nodiscard]] Request read_async(std::int64_t first_slot, std::int64_t count,
                                   std::span<std::byte> memory) const;
  /// Reads blocks of one slot, each to its place in the memory of the whole slot. Only these are read and
  /// verified, unless the slot is compressed: then all of it. Throws Error(EINVAL) also for blocks that do
  /// not exist.
  [[nodiscard]] Request read_blocks_async(std::int64_t slot, std::int64_t first, std::int64_t count,
                                          std::span<std::byte> memory) const;

  /// Puts everything written on stable storage. Throws the failure of a write that nobody waited for.
  void flush();
  /// The table as the bytes of a file, to be kept beside this one; it describes all writes that were waited
  /// for.
  [[nodiscard]] std::vector<std::byte> encode_table() const;
  /// Keeps an earlier state that somebody reads, in another process perhaps: slots to which its table refers
  /// are not overwritten. Call it before the first write.
  void keep(std::uint64_t state, const SlotTable& its_table);
  /// Makes the table as encoded last, with everything it refers to, the committed state. The state before had
  /// the number `before`; `is_read` tells whether somebody still reads that state, or an earlier one that was
  /// kept. Gives back the space of states that nobody reads, or keeps it (ComponentOptions::keep_space). A
  /// failure of that (EIO) is thrown, but the state is committed all the same.
  void committed(std::uint64_t before = 0, const std::function<bool(std::uint64_t state)>& is_read = {});
  /// Gives back, or keeps, all space to which neither the table nor a kept state refers, such as the space
  /// that a dead process has left. Only for the process that may write, and only while there are no
  /// uncommitted writes.
  void release_unused();
  /// Idempotent. Throws as flush does, without syncing.
  void close();

  static void remove(const std::string& path);  ///< throws Error(ENOENT) if there is none

  struct State;
  class Transfer;

 private:
  explicit Component(std::shared_ptr<State> state) noexcept;
  std::shared_ptr<State> state_;
};

}  // namespace outcore::store
