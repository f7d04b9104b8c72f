// Records of numbers that all processes read, write and add to: packed, in memory that they share while there
// is room, else in a file.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/sibling.hpp"
#include "outcore/global_array.hpp"
#include "outcore/record_file.hpp"
#include "outcore/world.hpp"

namespace outcore::chem::ci {

/// Records that were moved, and their packed bytes.
struct RecordTraffic {
  std::int64_t count = 0, bytes = 0;
  std::int64_t least = 0, most = 0;  ///< bytes of one; 0 of none

  void add(std::int64_t of_one) noexcept;
};

/// Of one process; those of the file are among all.
struct RecordStoreCounts {
  RecordTraffic reads, writes, file_reads, file_writes;
};

/// Zero at first. Memory is one array of bytes, of which each process takes extents while there are some, and
/// gives out what became free by its own writes; a directory in one-sided memory says where each record is.
/// One that finds no room is put into the file. Any thread; `add` is atomic for each record; `put` and `add`
/// are seen by a `get` that begins after they returned.
class OUTCORE_SIBLING RecordStore {
 public:
  /// `directory` has two int64 for each record and is zero; `memory` is of bytes, `taken` counts those that
  /// processes have taken. `locks`: of all processes, one for each of some groups of records. `sizes`:
  /// numbers of each record. `reserve`: bytes of memory that idle records leave to others. All are used until
  /// the store is gone.
  RecordStore(GlobalArray& memory, Counter& taken, GlobalArray& directory, file::RecordFile& file,
              std::vector<Lock*> locks, std::vector<std::int64_t> sizes, std::int64_t reserve);

  /// Records, ascending, one after another.
  void get(std::span<const std::int64_t> records, std::span<double> numbers);
  /// Each number with at most this error; 0: as it is. By one process at a time for each record.
  /// `idle`: they are not read nor added to soon, so others have memory first.
  void put(std::span<const std::int64_t> records, double error, std::span<const double> numbers, bool idle);
  void add(std::span<const std::int64_t> records, double error, std::span<const double> numbers);
  /// They are zero again.
  void erase(std::span<const std::int64_t> records);

  /// Bytes of memory that idle records leave to others from now on.
  void set_reserve(std::int64_t bytes);

  [[nodiscard]] RecordStoreCounts counts() const;
  /// Numbers of a record.
  [[nodiscard]] std::int64_t size(std::int64_t record) const { return sizes_.at(std::size_t(record)); }
  struct Place {
    std::int64_t bytes;  ///< packed; 0: it is zero
    bool in_memory;
  };
  [[nodiscard]] Place place(std::int64_t record) const;

 private:
  struct Entry {
    std::int64_t place;   ///< 0: zero; -1: in the file; else one more than the first byte
    std::int64_t extent;  ///< bytes, and room << 32
    [[nodiscard]] std::int64_t bytes() const { return extent & 0xffffffff; }
    [[nodiscard]] std::int64_t room() const { return extent >> 32; }
  };
  struct Buffers;
  [[nodiscard]] Entry entry(std::int64_t record) const;
  [[nodiscard]] std::vector<Entry> entries(std::span<const std::int64_t> records) const;
  void set(std::int64_t record, const Entry& entry);
  void load(std::int64_t record, const Entry& entry, std::span<double> numbers, Buffers& buffers);
  void store(std::int64_t record, Entry entry, double error, std::span<const double> numbers,
             Buffers& buffers, bool idle);
  [[nodiscard]] bool is_scarce(std::int64_t bytes);
  [[nodiscard]] bool take(std::int64_t bytes, Entry& entry);
  void give_back(const Entry& entry);
  void free(std::int64_t begin, std::int64_t room);
  void unfree(std::int64_t begin, std::int64_t room);

  GlobalArray& memory_;
  Counter& taken_;
  GlobalArray& directory_;
  file::RecordFile& file_;
  std::vector<Lock*> locks_;
  std::vector<std::int64_t> sizes_;
  std::int64_t extent_, reserve_;              // bytes
  mutable std::mutex mutex_;                   // of what follows
  std::int64_t next_ = 0, end_ = 0;            // of the extent that this process has begun
  std::map<std::int64_t, std::int64_t> free_;  // by first byte: room; none begins where another ends
  std::set<std::pair<std::int64_t, std::int64_t>> by_room_;  // room, first byte
  std::int64_t free_bytes_ = 0;
  RecordStoreCounts counts_;
};

}  // namespace outcore::chem::ci
