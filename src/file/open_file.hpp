// Open files of this process by path: several handles of one name share a file, which also stays open between
// them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "device/file.hpp"
#include "device/sequential.hpp"
#include "outcore/exclusive_file.hpp"
#include "outcore/origin.hpp"

namespace outcore::file {

struct OpenFile {
  OpenFile(std::string file_path, const device::OpenOptions& device_options, bool keeps, bool is_named);

  const std::string path;
  const bool keep;
  const bool read_only;  ///< cannot be opened for writing
  const bool named;      ///< has a directory entry: kept, or on a network file system
  const std::uint32_t trace_id;
  const Origin origin;  ///< see `foreign`
  device::File file;
  std::mutex mutex;  ///< guards `combined`
  device::SequentialBuffer combined;
  std::atomic<std::int64_t> read_end{0}, write_end{0};  ///< where the previous request ended, for the trace
  int handles = 0;                                      ///< guarded by the registry

  /// Whether it was opened by the parent of this forked process.
  [[nodiscard]] bool foreign() const noexcept { return !origin.here(); }
};

/// The file of that name, open in this process or opened now. Counts a handle.
std::shared_ptr<OpenFile> acquire(const std::string& name, const ExclusiveFileOptions& options);

/// Gives a handle back. The last one of a kept file closes it; other files stay open for the next `acquire`.
void release(const std::shared_ptr<OpenFile>& file);

/// Gives a handle back and removes the file. Other handles still use it, as with unlink(2).
void discard(const std::shared_ptr<OpenFile>& file);

}  // namespace outcore::file
