// The file of packed two-electron integrals of one process: large records, written behind, read ahead.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "outcore/chem/slab.hpp"
#include "outcore/device/buffer.hpp"
#include "outcore/file/exclusive_file.hpp"

namespace outcore::chem {

struct IntegralFileOptions {
  std::size_t record_bytes = 4 << 20;  ///< a multiple of 4096, at least 64 KiB
  int prefetch = 4;                    ///< records read ahead, at least 2
  double step = 1e-10;                 ///< rounding step of the stored values
  file::ExclusiveFileOptions file;
};

/// Records of packed slabs in an exclusive access file. Writing: one Writer a thread, any number of them at a
/// time. Reading, after all writers finished: whole passes, any number of times.
class IntegralFile {
 public:
  IntegralFile(const Basis& basis, const IntegralFileOptions& options);

  /// Packs slabs into records; a full one is written without waiting while the next is filled.
  class Writer {
   public:
    explicit Writer(IntegralFile& file);
    ~Writer();  ///< waits for what is being written; an error is lost here, so call finish()
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    void add(const Slab& slab);
    void finish();  ///< writes what is left and waits; throws the first error of any write
    [[nodiscard]] std::uint64_t stored_integrals() const noexcept { return codec_.stored_integrals(); }

   private:
    void write_record();
    static constexpr std::size_t buffers = 3;  // one being filled, two being written

    IntegralFile& file_;
    SlabCodec codec_;
    device::Buffer buffers_[buffers];
    device::Request requests_[buffers];
    std::vector<std::byte> aside_;  // a slab that may not fit into the record being filled
    std::size_t current_ = 0, used_ = 0;
    std::uint32_t slabs_ = 0;
  };

  /// Reads all records, `prefetch` of them ahead, and calls consume(thread, slab) in `threads` threads. The
  /// first error (I/O, damage, or from consume) is thrown when all threads have stopped. `values` of a slab
  /// are in units of step().
  void for_each(int threads, const std::function<void(int thread, const Slab& slab)>& consume);

  [[nodiscard]] double step() const noexcept { return options_.step; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t records() const noexcept { return lengths_.size(); }
  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }

  /// Memory used while writing or reading with this many threads.
  [[nodiscard]] static std::size_t memory_bytes(const IntegralFileOptions& options, int threads);

 private:
  friend class Reader;
  std::int64_t new_record(std::size_t used);

  const Basis& basis_;
  IntegralFileOptions options_;
  file::ExclusiveFile file_;
  std::mutex mutex_;
  std::vector<std::uint32_t> lengths_;  // of the used part of each record
  std::atomic<std::int64_t> bytes_{0};
};

}  // namespace outcore::chem
