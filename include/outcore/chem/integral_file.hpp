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

#include "outcore/chem/slab.hpp"
#include "outcore/device/buffer.hpp"
#include "outcore/file/exclusive_file.hpp"

namespace outcore::chem {

struct IntegralFileOptions {
  std::size_t record_bytes = 4 << 20;  ///< a multiple of 4096, at least 64 KiB
  int prefetch = 4;                    ///< records read ahead, at least 2
  std::shared_ptr<const Accuracy> accuracy = std::make_shared<Accuracy>(1e-10);  ///< of the stored values
  std::int64_t memory_bytes = 0;  ///< for records that stay in memory; they are filled first
  std::int64_t disk_bytes = std::numeric_limits<std::int64_t>::max();  ///< for records on disk
  double small_below =
      0;  ///< slabs with smaller bounds (Slab::small) have records of their own; 0: there are none
  bool may_overflow =
      false;              ///< a disk that is full before disk_bytes are written loses records; else an error
  std::string kept_name;  ///< the file has this name in file.scratch and stays once commit() was called
  file::ExclusiveFileOptions file;
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

/// Records of packed slabs. Writing: one Writer a thread, any number of them at a time. Reading, after all
/// writers finished: whole passes, any number of times. Small slabs (Slab::small) have records of their own,
/// so that a pass can leave them out.
///
/// A record that found no place (both budgets used up, or the disk full), or that comes back damaged, is
/// lost: what was in it is known, and is handed out by take_lost to be computed again.
class IntegralFile {
 public:
  IntegralFile(const Basis& basis, const IntegralFileOptions& options);
  /// Kept files in file.scratch, of any number of processes: part `part` of `parts` of their records, for
  /// reading. Throws Error(EIO) if an index is damaged, Error(ENOENT) if a file is not there.
  IntegralFile(const Basis& basis, const IntegralFileOptions& options, std::span<const KeptFile> kept,
               int part, int parts);
  ~IntegralFile();  ///< the records are gone, unless they are kept
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
  /// Records with no Slab::bound of `least` (Hartree) or more are
  /// left out. The first error of consume is thrown when all threads have stopped.
  void for_each(int threads, const std::function<void(int thread, const Slab& slab)>& consume,
                double least = 0);

  /// Puts the records on stable storage and says where they are; the file stays. After all writers finished.
  /// Throws Error(ENOSPC) if some were lost.
  [[nodiscard]] KeptFile commit();

  /// What was lost since the last call.
  [[nodiscard]] std::vector<SlabRange> take_lost();

  [[nodiscard]] std::size_t records() const;      ///< that are not lost
  [[nodiscard]] std::uint64_t integrals() const;  ///< in them
  [[nodiscard]] std::int64_t memory_bytes() const noexcept { return used_[0]; }
  [[nodiscard]] std::int64_t disk_bytes() const noexcept { return used_[1]; }
  [[nodiscard]] std::size_t damaged() const noexcept { return damaged_; }  ///< records found so, so far
  [[nodiscard]] const std::string& path() const noexcept { return files_.front().path(); }

  /// Memory used while writing or reading with this many threads, records that stay in memory apart.
  [[nodiscard]] static std::size_t work_bytes(const IntegralFileOptions& options, int threads);

 private:
  friend class IntegralPass;
  struct Record {
    std::int64_t number = 0;  // position on disk
    std::uint32_t file = 0;
    std::uint32_t slabs = 0;
    std::uint64_t integrals = 0;
    std::uint32_t used = 0;      // bytes
    std::uint32_t checksum = 0;  // of whole pages
    double bound = 0;            // largest of its slabs
    bool lost = false;
    device::Buffer memory;  // if it stays there
    std::vector<SlabRange> ranges;
  };
  enum class Place { memory, disk, nowhere };

  Place reserve(std::size_t length);
  Record& keep(Record&& record, Place place);
  void lose(Record& record);

  const Basis& basis_;
  IntegralFileOptions options_;
  std::vector<file::ExclusiveFile> files_;  // one that is written, or several kept ones
  bool committed_ = false;
  mutable std::mutex mutex_;
  std::deque<Record> records_;  // of both places
  std::vector<SlabRange> lost_;
  std::int64_t used_[2] = {0, 0};  // of memory_bytes, disk_bytes
  std::int64_t next_ = 0;          // record on disk
  std::atomic<bool> full_{false};
  std::atomic<std::size_t> damaged_{0};
};

}  // namespace outcore::chem
