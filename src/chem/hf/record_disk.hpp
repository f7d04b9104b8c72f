// The place of integral records on disk.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "chem/hf/integral_file.hpp"
#include "outcore/request.hpp"

namespace outcore::chem {

/// Records are written in whole pages, for direct I/O.
constexpr std::size_t whole_pages(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  return (bytes + page - 1) / page * page;
}

/// The position of a record: which file, and which record of it.
struct RecordLocation {
  std::uint32_t file = 0;
  std::int64_t number = 0;
};

/// Records of one size in files of this process, or in one file of all processes. Any thread may read and
/// write.
class RecordDisk {
 public:
  virtual ~RecordDisk() = default;
  /// The location of the n-th record that this process writes.
  [[nodiscard]] virtual RecordLocation locate(std::int64_t n) const = 0;
  [[nodiscard]] virtual Request write_async(std::span<const std::byte> bytes, RecordLocation location) = 0;
  [[nodiscard]] virtual Request read_async(std::span<std::byte> bytes, RecordLocation location) = 0;
  [[nodiscard]] virtual const std::string& path(std::uint32_t file) const = 0;
  virtual void flush() = 0;  ///< puts the records that this process wrote on stable storage
  virtual void drop() = 0;   ///< removes the files; collective for a file of all processes
};

/// Opens a file of this process; with a kept name it stays unless it is dropped.
std::unique_ptr<RecordDisk> own_file(const IntegralFileOptions& options);
/// Opens kept files, of any number of processes, for reading. Throws Error(ENOENT) if one is missing.
std::unique_ptr<RecordDisk> kept_files(const IntegralFileOptions& options, std::span<const KeptFile> kept);
/// Opens one file of all processes of options.world, in its scratch directories. Collective.
std::unique_ptr<RecordDisk> file_of_all(const IntegralFileOptions& options);

}  // namespace outcore::chem
