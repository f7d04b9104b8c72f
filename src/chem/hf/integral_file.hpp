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
  /// Counts the bytes on disk of all processes that share disk_bytes; null: they are of this process alone.
  Counter* disk_used = nullptr;
  double small_below =
      0;  ///< slabs with smaller bounds (Slab::small) have records of their own; 0: there are none
  bool may_overflow =
      false;              ///< a disk that is full before disk_bytes are written loses records; else an error
  std::string kept_name;  ///< the file has this name in file.scratch and stays once commit() was called
  /// Of the file of this process. One of all processes lies in the scratch directories of the world instead.
  file::ExclusiveFileOptions file;
  /// Global placement: any process of this world may read any record on disk, once their indices were
  /// exchanged (IntegralFile::index, share). Null: local, each reads what it wrote.
  World* world = nullptr;
};

/// What is needed to read the records of a kept file again.
struct KeptFile {
  std::string name;
  std::vector<std::byte> index;
};

/// Slabs of a task, large ones or small ones, in the order in which SlabMaker yields those that are kept.
struct SlabRange {
  std::uint32_t task = 0;
  bool small = false;
  bool whole = false;  ///< all of them; else `count` from number `first` on
  std::uint32_t first = 0, count = 0;
};

/// A record on disk: where it lies and what it holds.
struct IndexedRecord {
  std::int64_t number = 0;  ///< position in the file, in records
  std::uint32_t slabs = 0;
  std::uint64_t integrals = 0;
  std::uint32_t used = 0;      ///< bytes
  std::uint32_t checksum = 0;  ///< of whole pages
  double bound = 0;            ///< largest of its slabs
  std::vector<SlabRange> ranges;
};

/// Hands out the numbers 0, 1, 2, ... to those who read records, each once for all of them together. Called
/// by any thread.
using Tickets = std::function<std::uint64_t()>;

/// Records of packed slabs. Writing: one Writer a thread, any number of them at a time. Reading, after all
/// writers finished: whole passes, any number of times. Small slabs (Slab::small) have records of their own,
/// so that a pass can leave them out.
///
/// A record that found no place (both budgets used up, or the disk full) is lost: lost() tells what was in
/// it, to be computed again in each pass, also by those that read kept files later. One that comes back
/// damaged is handed out by take_damaged, to be computed again in that pass; who reads it in the next one
/// nobody knows.
///
/// With global placement making and dropping are collective, and records that stay in memory are still read
/// by the process that wrote them.
class OUTCORE_SIBLING IntegralFile {
 public:
  IntegralFile(const Basis& basis, const IntegralFileOptions& options);
  /// Kept files in file.scratch, of any number of processes, for reading: part `part` of `parts` of what was
  /// lost and of their records, or with global placement all of them (and that part in the counts). `tasks`:
  /// how many there are. Throws Error(EIO) if an index is damaged, or names what is not there or something
  /// twice; Error(ENOENT) if a file is not there.
  IntegralFile(const Basis& basis, const IntegralFileOptions& options, std::span<const KeptFile> kept,
               std::size_t tasks, int part, int parts);
  ~IntegralFile();  ///< not collective; the records are gone (with the world, if global) unless they are kept
  IntegralFile(const IntegralFile&) = delete;
  IntegralFile& operator=(const IntegralFile&) = delete;

  /// Packs slabs into records; a full one is written without waiting while the next is filled.
  class Writer {
   public:
    explicit Writer(IntegralFile& file);
    ~Writer();  ///< waits for what is being written; an error is lost here, so call finish()
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    /// All slabs of a task are added one after the other, in the order of SlabMaker.
    void begin(std::uint32_t task);
    void add(const Slab& slab);
    void finish();  ///< writes what is left and waits; throws the first error of any write

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

  /// No place is left: what is added from now on is lost.
  [[nodiscard]] bool full() const noexcept { return full_; }
  /// Counts a task as lost that nobody has computed.
  void lose(std::uint32_t task);

  /// Reads all records, `prefetch` of them ahead, and calls consume(thread, slab) in `threads` threads.
  /// Records with no Slab::bound of `least` (Hartree) or more are left out. With tickets, which global
  /// placement needs, the records on disk are divided among all processes that share them as they ask;
  /// `least` must be the same at all. The first error of consume is thrown when all threads have stopped.
  void for_each(int threads, const std::function<void(int thread, const Slab& slab)>& consume,
                double least = 0, const Tickets& tickets = {});

  /// Where the records on disk are, for share() of other processes; after all writers finished.
  [[nodiscard]] std::vector<std::byte> index() const;
  /// Makes the records of all processes known, in order of rank, this process's own among them.
  void share(std::span<const std::vector<std::byte>> indices);
  /// Puts the records on stable storage and says where they are; the file stays. After all writers finished.
  [[nodiscard]] KeptFile commit();

  void drop();  ///< the records are gone, unless they are kept; collective if global

  /// What found no place; of kept files this process's part.
  [[nodiscard]] std::vector<SlabRange> lost() const;
  /// What came back damaged since the last call.
  [[nodiscard]] std::vector<SlabRange> take_damaged();

  // Of this process, where all know the records of all.
  [[nodiscard]] std::size_t records() const;      ///< that are not lost
  [[nodiscard]] std::uint64_t integrals() const;  ///< in them
  [[nodiscard]] std::int64_t memory_bytes() const noexcept { return used_[0]; }
  [[nodiscard]] std::int64_t disk_bytes() const noexcept { return used_[1]; }
  [[nodiscard]] std::size_t damaged() const noexcept { return damaged_; }  ///< records found so, so far
  [[nodiscard]] const std::string& path() const;

  /// Memory used while writing or reading with this many threads, records that stay in memory apart.
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
