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
  /// Direct by default: chunks are large, aligned, and cached above this layer if at all.
  device::PageCache page_cache = device::PageCache::direct;
  device::Engine* engine = nullptr;  ///< null: default_engine()
  bool read_only = false;
  int directory = -1;              ///< as device::OpenOptions::directory
  bool unlink_after_open = false;  ///< create: the file has no name, and vanishes with the process
  bool preallocate = false;        ///< create: reserve the space of all slots (of one side), or Error(ENOSPC)
  /// With shadow and without a codec: space that a commit leaves unused is kept for the next version, which a
  /// disk takes in faster than it finds new space, while the disk has several times as much free.
  bool keep_space = false;
  /// Called before the table takes memory (it may throw, and then there is none), and with a negative number
  /// when that is given back.
  std::function<void(std::int64_t bytes)> account{};
  /// What a slot is to the user, for error messages: "chunk 17 [0:128, 256:384]".
  std::function<std::string(std::int64_t slot)> describe{};
};

/// A file of slots, and the table that says what is in them. Slots that were never written read as zeros
/// and cost no I/O.
///
/// Any thread may make and await requests, several at a time, as long as no two of them concern the same
/// slot, unless both read. What concerns the component as a whole (flush, encode_table, committed, close)
/// must not be called while requests are under way.
///
/// What is guaranteed when writes fail or the process dies:
/// - A write takes effect when it has been waited for; until then the table says what it said before, and
///   afterwards for those slots whose transfer failed. Of a write of several slots some may succeed.
/// - With Geometry::shadow, slots of the committed state are never overwritten: their content and the table
///   that was encoded with it stay valid, whatever happens to later writes, until `committed` is called; and
///   so do those of states before it, as long as somebody is said to read them. The file grows for that.
/// - The space of a write that failed is given back at once, where the table refers to nothing.
/// - A slot that is overwritten in place (without shadow, or written again before the commit) may hold some
///   blocks of either version after a failure. Reading it gives the earlier content if that is untouched, and
///   Error(EIO) else: the checksums tell, never a mixture. Space is not needed to overwrite in place, so a
///   full disk (ENOSPC) leaves the earlier content alone, but on file systems that copy on write.
/// - Nothing is on stable storage before `flush`.
class Component {
 public:
  /// A new file without content. Error(EEXIST) if there is one of that name.
  [[nodiscard]] static Component create(const std::string& path, const Geometry& geometry,
                                        const ComponentOptions& options = {});
  /// An existing file with the table that describes its committed state. Error(EIO) if the file is shorter or
  /// longer than its table can say: states that were kept have left it more sides.
  [[nodiscard]] static Component open(const std::string& path, SlotTable table,
                                      const ComponentOptions& options = {});
  ~Component();  ///< closes; an error is lost here, so call close()
  Component(Component&&) noexcept;
  Component& operator=(Component&& other) noexcept;

  [[nodiscard]] const Geometry& geometry() const noexcept;
  [[nodiscard]] const SlotTable& table() const noexcept;
  [[nodiscard]] const std::string& path() const noexcept;

  /// Slots that the next write would put where nothing of theirs is yet, as they are now.
  struct Former {
    std::int64_t first_slot = 0, count = 0;
    std::vector<SlotTable::Entry> entries;  ///< empty: they were never written
  };
  [[nodiscard]] std::vector<Former> former(std::int64_t first_slot, std::int64_t count) const;
  /// After the failure of a larger whole: those slots are again what they were, the latest first. No request
  /// may be under way for them. Then `give_back` has more to do.
  void restore(std::span<const Former> former) noexcept;
  /// The disk has the space again that was reserved, or written, for slots, and that the table does not refer
  /// to. What cannot be given back stays until the next commit.
  void give_back(std::int64_t first_slot, std::int64_t count) noexcept;

  /// Reserves space on the disk for slots that are about to be written, if they are written as they are, in
  /// pieces of 1 MiB or more that lie together: files then take them in faster. Nothing where the file system
  /// cannot. What it has reserved stays when it fails, until `give_back`. Waits for requests under way.
  /// Throws Error: ENOSPC, EINVAL for slots that are not there.
  void reserve(std::int64_t first_slot, std::int64_t count);

  /// Writes and reads of consecutive slots. The memory must stay valid, and untouched, until the request has
  /// been waited for, or its last copy is gone, which waits, too. Whoever waits for a read verifies and
  /// decompresses it: it fails with Error(EIO) for damage, naming file, slot, offset, and both checksums.
  ///
  /// In memory, as on disk, slots lie geometry().stride_bytes() apart, and the memory has the size of
  /// `count` strides. Aligned to 4096 it is read and written in place: take it from device::Buffer. Checksums
  /// are computed, and chunks compressed, within this call, while the first part of the data is on its way.
  /// Zeroes the bytes between slot_bytes and the stride. Throws Error: EINVAL for slots that are not there or
  /// memory of another size, EBADF after close or if opened read-only, ENOSPC, ENOMEM, EBUSY if so many
  /// states of the slot are kept that there is no side for another one (SlotTable::max_sides).
  [[nodiscard]] Request write_async(std::int64_t first_slot, std::int64_t count, std::span<std::byte> memory);
  /// As write_async. Bytes between slot_bytes and the stride are of no meaning.
  [[nodiscard]] Request read_async(std::int64_t first_slot, std::int64_t count,
                                   std::span<std::byte> memory) const;
  /// Blocks of one slot, each to its place in the memory of the whole. No more is read, nor verified, but
  /// where the slot is compressed: then all of it. Throws Error(EINVAL) also for blocks that are not there.
  [[nodiscard]] Request read_blocks_async(std::int64_t slot, std::int64_t first, std::int64_t count,
                                          std::span<std::byte> memory) const;

  /// All that was written is on stable storage. Throws the failure of a write that nobody waited for.
  void flush();
  /// The table as a file, to be kept beside this one; it describes what has been written and waited for.
  [[nodiscard]] std::vector<std::byte> encode_table() const;
  /// A state before the present one that somebody reads, from another process perhaps: what its table refers
  /// to is not overwritten. Before the first write.
  void keep(std::uint64_t state, const SlotTable& its_table);
  /// The table as encoded last, and everything it refers to, is the committed state. The one before had the
  /// number `before`; `is_read` says of that, and of all that have been kept, whether somebody still reads
  /// them. Gives back the space of those that nobody reads, or keeps it (ComponentOptions::keep_space); a
  /// failure of that (EIO) is thrown, but changes nothing of the rest.
  void committed(std::uint64_t before = 0, const std::function<bool(std::uint64_t state)>& is_read = {});
  /// Gives back, or keeps, all space that neither the table nor a state that is kept refers to, such as a
  /// process that died has left. Only for the one that may write, and when nothing is written that is not
  /// committed.
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
