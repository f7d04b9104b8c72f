// Records of numbers that all processes read, write and add to. They are packed, and lie in shared memory of
// the processes while there is room, else in a file.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/sibling.hpp"
#include "file/record_space.hpp"
#include "file/shared_bytes.hpp"
#include "outcore/record_file.hpp"
#include "outcore/world.hpp"

namespace outcore::file {

/// Records that were moved, and their packed bytes.
struct RecordTraffic {
  std::int64_t count = 0, bytes = 0;
  std::int64_t least = 0, most = 0;  ///< bytes of one; 0 of none

  void add(std::int64_t of_one) noexcept;
};

/// Counts of one process; reads and writes include those of the file.
struct RecordStoreCounts {
  RecordTraffic reads, writes, file_reads, file_writes;
};

struct RecordStoreOptions {
  std::vector<std::int64_t> sizes;  ///< numbers of each record
  std::int64_t memory_bytes = 0;    ///< of each process, for packed records
  std::int64_t reserve_bytes = 0;   ///< part of the memory of all processes that idle records leave to others
  Placement placement = Placement::automatic;  ///< of the file
  device::Engine* engine = nullptr;            ///< of the file; null: the default engine
};

/// Records are initially zero. The memory of all processes forms one row of bytes. Each process takes extents
/// of it while some are left, and reuses the space that its own writes freed. A directory in one-sided memory
/// has the place of each record. A record that finds no room goes to the file, whose records have checksums.
/// Any thread. `add` is atomic for each record. A `get` that begins after `put`, `add` or `erase` returned
/// sees their effect. No process may get a record while another one puts or erases it.
///
/// Errors: EINVAL (options), EBADF (closed), EIO (a record that is damaged), and those of a RecordFile;
/// std::invalid_argument for records and numbers that do not fit together.
class OUTCORE_SIBLING RecordStore {
 public:
  /// Collective, with the same arguments at all processes, except the engine. The world must outlive the
  /// store.
  RecordStore(World& world, const std::string& name, RecordStoreOptions options);

  /// Reads records, in ascending order, one after another.
  void get(std::span<const std::int64_t> records, std::span<double> numbers);
  /// Writes records, each number with at most this error; 0: exactly. Only one process at a time may put a
  /// record. `idle`: the records will not be read or added to soon, so other records have memory first.
  void put(std::span<const std::int64_t> records, double error, std::span<const double> numbers, bool idle);
  /// Adds to records. The sums are stored with at most this error.
  void add(std::span<const std::int64_t> records, double error, std::span<const double> numbers);
  /// Sets records to zero.
  void erase(std::span<const std::int64_t> records);

  /// Sets the bytes of memory that idle records leave to others from now on.
  void set_reserve(std::int64_t bytes);

  [[nodiscard]] RecordStoreCounts counts() const;
  struct Place {
    std::int64_t bytes;  ///< packed; 0: it is zero
    bool in_memory;
  };
  [[nodiscard]] Place place(std::int64_t record) const;

  void close();  ///< collective, idempotent; the records are gone

 private:
  struct Entry {
    std::int64_t place;   ///< 0: the record is zero; -1: it is in the file; else one more than the granule
    std::int64_t extent;  ///< bytes, and class << 32
    [[nodiscard]] std::int64_t bytes() const noexcept { return extent & 0xffffffff; }
    [[nodiscard]] RecordSpace::Allocation allocation() const noexcept {
      return {place - 1, static_cast<int>(extent >> 32)};
    }
  };
  struct Buffers;
  void check_open(std::string_view attempted) const;
  void check(std::string_view attempted, std::span<const std::int64_t> records, std::size_t numbers) const;
  [[nodiscard]] Entry entry(std::int64_t record) const;
  [[nodiscard]] std::vector<Entry> entries(std::span<const std::int64_t> records) const;
  void set(std::int64_t record, const Entry& entry);
  void load(std::int64_t record, const Entry& entry, std::span<double> numbers, Buffers& buffers);
  void store(std::int64_t record, const Entry& before, double error, std::span<const double> numbers,
             Buffers& buffers, bool idle);
  [[nodiscard]] bool is_scarce(std::int64_t bytes);
  [[nodiscard]] std::optional<RecordSpace::Extent> take_extent(std::int64_t least, std::int64_t wanted);

  World& world_;
  std::vector<std::int64_t> sizes_;
  SharedBytes memory_, directory_;
  RecordFile file_;
  Counter taken_;             // granules of memory, by all processes
  std::deque<Lock> locks_;    // each of some of the records
  RecordSpace space_;         // of memory
  mutable std::mutex mutex_;  // guards the members below
  std::int64_t reserve_;
  RecordStoreCounts counts_;
};

}  // namespace outcore::file
