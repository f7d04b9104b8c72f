// EAF: exclusive access files, byte-addressable scratch files of one process.
// Source: the Exclusive Access Files of the ChemIO project (Nieplocha, Foster, Kendall 1998).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "outcore/device/file.hpp"

namespace outcore::file {

struct ExclusiveFileOptions {
  std::string scratch;  ///< directory; empty: default_scratch()
  bool keep = false;    ///< the file has a name in `scratch` and outlives the process
  device::Cache cache = device::Cache::automatic;
  std::int64_t expected_bytes = 0;    ///< hint: larger than free space is Error(ENOSPC) before anything is written
  device::Engine* engine = nullptr;   ///< null: the default engine
};

/// A scratch file of this process. Its name is private to the process: two processes that open "ints" have
/// two files. It vanishes with the process, also when that is killed, unless `keep`. Opening a name again in
/// the same process, also after close, finds the same bytes; `erase` drops them.
///
/// Small sequential requests (below 1 MiB) are combined: written behind and read ahead; a read always sees the
/// writes before it. One thread at a time may use the blocking calls; nonblocking requests on disjoint bytes
/// may be in flight together with anything.
///
/// Errors: EINVAL (negative offset or size), EBADF (closed), ENOSPC, EIO. Reading beyond the end gives fewer
/// bytes, as read(2) does. A failed write-behind is thrown by the next write, flush or close.
class ExclusiveFile {
 public:
  explicit ExclusiveFile(const std::string& name, const ExclusiveFileOptions& options = {});
  ~ExclusiveFile();
  ExclusiveFile(ExclusiveFile&&) noexcept;
  ExclusiveFile& operator=(ExclusiveFile&&) noexcept;

  std::int64_t read(std::span<std::byte> buffer, std::int64_t offset);
  std::int64_t write(std::span<const std::byte> buffer, std::int64_t offset);
  [[nodiscard]] device::Request async_read(std::span<std::byte> buffer, std::int64_t offset);
  [[nodiscard]] device::Request async_write(std::span<const std::byte> buffer, std::int64_t offset);

  [[nodiscard]] std::int64_t length();
  [[nodiscard]] bool eof(std::int64_t offset);
  void truncate(std::int64_t length_bytes);
  void preallocate(std::int64_t size_bytes);
  void flush();  ///< to stable storage
  void close();
  void erase();  ///< closes and removes the file
  [[nodiscard]] const std::string& path() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace outcore::file
