// The packed two-electron integrals of one process in large records: in memory, then on disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/sibling.hpp"
#include "chem/hf/slab.hpp"
#include "device/buffer.hpp"
#include "outcore/exclusive_file.hpp"
#include "outcore/world.hpp"

namespace outcore::chem {

class RecordDisk;

struct IntegralFileOptions {
  std::size_t record_bytes = 4 << 20;  ///< a multiple of 4096, at least 64 KiB
  int prefetch = 4;                    ///< records read ahead, at least 2
  std::shared_ptr<const Accuracy> accuracy = std::make_shared<Accuracy>(1e-10);  ///< of the stored values
  std::int64_t memory_bytes = 0;  ///< for records that stay in memory; they are filled first
  std::int64_t disk_bytes = std::numeric_limits<std::int64_t>::max();  ///< for records on disk
  /// Counts the bytes on disk of all processes, which then share disk_bytes; null: disk_bytes is for this
  /// process alone.
  Counter* disk_used = nullptr;
  double small_below =
      0;  ///< slabs with smaller bounds (Slab::small) have records of their own; 0: there are none
  bool may_overflow =
      false;  ///< if the disk is full before disk_bytes are written: true loses records, false is an error
  std::string kept_name;  ///< name of the file in file.scratch, which stays once commit() was called
  /// Options of the file of this process. A file of all processes lies in the scratch directories of the
  /// world instead.
  file::ExclusiveFileOptions file;
  /// Global placement: any process of this world may read any record on disk, once the processes have
  /// exchanged their indices (IntegralFile::index, share). Null: local placement, each process reads the
  /// records that it wrote.
  World* world = nullptr;
};

/// A kept file: its name and the index of its records.
struct KeptFile {
  std::string name;
  std::vector<std::byte> index;
};

/// Slabs of a task, large ones or small ones, in the order in which SlabMaker makes those that are kept.
struct SlabRange {
  std::uint32_t task = 0;
  bool small = false;
  bool whole = false;  ///< all of them; else `count` from number `first` on
  std::uint32_t first = 0, count = 0;
};

/// A record on disk: its place and its contents.
struct IndexedRecord {
  std::int64_t number = 0;  ///< position in the file, in records
  std::uint32_t slabs = 0;
  std::uint64_t integrals = 0;
  std::uint32_t used = 0;      ///< bytes
  std::uint32_t checksum = 0;  ///< of whole pages
  double bound = 0;            ///< largest of its slabs
  std::vector<SlabRange> ranges;
};

/// Hands out the numbers 0, 1, 2, ... to the readers of records, each number once among all readers. Any
/// thread calls it.
using Tickets = std::function<std::uint64_t()>;

/// Records of packed slabs. Writing: one Writer for each thread, any number of them at a time. Reading, after
/// all writers have finished: whole passes, any number of times. Small slabs (Slab::small) have their own
/// records, so that a pass can leave them out.
///
/// A record that finds no place (both budgets are used up, or the disk is full) is lost: lost() names its
/// slabs, which each pass must recompute, also a pass over kept files later. take_damaged() names the slabs
/// of a record that comes back damaged; they must be recomputed in that pass, as another process may read the
/// record in the next one.
///
/// With global placement, construction and drop are collective, and a record that stays in memory is still
/// read by the process that wrote it.
class OUTCORE_SIBLING IntegralFile {
 public:
  IntegralFile(const Basis& basis, const IntegralFileOptions& options);
  /// Opens kept files in file.scratch, of any number of processes, for reading: part `part` of `parts` of the
  /// lost slabs and of the records; with global placement all records (the counts have that part). `tasks`:
  /// number of tasks. Throws Error(EIO) if an index is damaged, or names an unknown task or one slab twice;
  /// Error(ENOENT) if a file is missing.
  IntegralFile(const Basis& basis, const IntegralFileOptions& options, std::span<const KeptFile> kept,
               std::size_t tasks, int part, int parts);
  ~IntegralFile();  ///< not collective; the records are gone (with the world, if global) unless they are kept
  IntegralFile(const IntegralFile&) = delete;
  IntegralFile& operator=(const IntegralFile&) = delete;

  /// Packs slabs into records. A full record is written in the background while the next one is filled.
  class Writer {
   public:
    explicit Writer(IntegralFile& file);
    ~Writer();  ///< waits for writes under way; an error is lost here, so call finish()
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    /// Adds a slab. All slabs of a task must be added one after the other, in the order of SlabMaker.
    void begin(std::uint32_t task);
    void add(const Slab& slab);
    void finish();  ///< writes the last records and waits; throws the first error of any write

   private:
    struct Stream;
    void end_task();
    void write_record(Stream& stream);
    void wait(Stream& stream, std::size_t which);

    IntegralFile& file_;
    SlabCodec codec_;
    std::uint32_t task_ = 0;
    std::unique_ptr<Stream> streams_[2];  // large slabs, small ones; made when first needed
    std::vector<std::byte> aside_;        // a slab that may not fit into the record being filled
  };

  /// Whether no place is left: slabs that are added from now on are lost.
  [[nodiscard]] bool full() const noexcept { return full_; }
  /// Counts a task as lost without computing it.
  void lose(std::uint32_t task);

  /// Reads all records, `prefetch` of them ahead, and calls consume(thread, slab) in `threads` threads.
  /// Leaves out records whose slabs all have a Slab::bound below `least` (Hartree). With tickets, which
  /// global placement needs, the processes that share the records on disk take them one by one; `least` must
  /// be the same at all. The first error of consume is thrown when all threads have stopped.
  void for_each(int threads, const std::function<void(int thread, const Slab& slab)>& consume,
                double least = 0, const Tickets& tickets = {});

  /// Where the records on disk are, for share() of other processes; after all writers have finished.
  [[nodiscard]] std::vector<std::byte> index() const;
  /// Makes the records of all processes known. indices: those of all processes, in order of rank, with this
  /// process's own.
  void share(std::span<const std::vector<std::byte>> indices);
  /// Puts the records on stable storage and returns where they are; the file stays. After all writers have
  /// finished.
  [[nodiscard]] KeptFile commit();

  void drop();  ///< the records are gone, unless they are kept; collective if global

  /// The slabs that found no place; of kept files this process's part.
  [[nodiscard]] std::vector<SlabRange> lost() const;
  /// The slabs that came back damaged since the last call.
  [[nodiscard]] std::vector<SlabRange> take_damaged();

  // Counts of this process, also when it knows the records of all processes.
  [[nodiscard]] std::size_t records() const;      ///< records that are not lost
  [[nodiscard]] std::uint64_t integrals() const;  ///< in them
  [[nodiscard]] std::int64_t memory_bytes() const noexcept { return used_[0]; }
  [[nodiscard]] std::int64_t disk_bytes() const noexcept { return used_[1]; }
  [[nodiscard]] std::size_t damaged() const noexcept { return damaged_; }  ///< records found so, so far
  [[nodiscard]] const std::string& path() const;

  /// Bytes of memory for writing or reading with this many threads, without the records that stay in memory.
  [[nodiscard]] static std::size_t work_bytes(const IntegralFileOptions& options, int threads);

 private:
  friend class IntegralPass;
  struct Record : IndexedRecord {
    Record() = default;
    explicit Record(IndexedRecord indexed) : IndexedRecord(std::move(indexed)) {}

    std::uint32_t file = 0;  // in which it lies, if on disk
    bool lost = false;
    bool mine = true;       // in the counts of this process
    bool damaged = false;   // came back so
    device::Buffer memory;  // if it stays there
  };
  enum class Medium { memory, disk, nowhere };

  Medium reserve(std::size_t length);
  Record& keep(Record&& record, Medium medium);
  void lose(Record& record, Medium medium);
  void found_damaged(Record& record);
  void know(std::vector<IndexedRecord> records, std::uint32_t file, const std::function<bool()>& mine);

  const Basis& basis_;
  IntegralFileOptions options_;
  std::unique_ptr<RecordDisk> disk_;
  bool removes_ = true;  // the records go with this object
  mutable std::mutex mutex_;
  std::deque<Record> records_;  // of both media
  std::vector<SlabRange> lost_, damaged_ranges_;
  std::int64_t used_[2] = {0, 0};  // of memory_bytes, disk_bytes
  std::int64_t next_ = 0;          // record of this process on disk
  std::atomic<bool> full_{false};
  std::atomic<std::size_t> damaged_{0};
};

}  // namespace outcore::chem
