// Small files that are written completely or not at all, and functions that wait for stable storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "device/file.hpp"
#include "outcore/extend/engine.hpp"

namespace outcore::store {

// `directory`: a descriptor of the directory of the files, in which names are then looked up (see
// device::OpenOptions::directory); -1: the directory in the path.

/// When this returns, the file holds `bytes`, on stable storage; if it throws, or the machine stops
/// meanwhile, it holds the new or the old bytes. The bytes are written to a file beside it (`path` + ".new",
/// which a crash may leave and the next call overwrites), which then takes its name. One writer at a time.
/// `replaced`: set once the file may hold the new bytes, also if it throws after that.
void write_durably(const std::string& path, std::span<const std::byte> bytes,
                   device::Engine* engine = nullptr, bool* replaced = nullptr, int directory = -1);

/// Renames a file durably, and replaces a file of the new name. `renamed`: as `replaced` above.
void rename_durably(const std::string& from, const std::string& to, bool* renamed = nullptr,
                    int directory = -1);

/// Writes a file that is not used before another one names it; it is on stable storage only after its `flush`
/// and sync_directory. It is a new file: an old file loses the name, and a symbolic link is not followed.
[[nodiscard]] device::File write_unsynced(const std::string& path, std::span<const std::byte> bytes,
                                          device::Engine* engine = nullptr, int directory = -1);

/// Runs all functions at the same time. Each waits for stable storage, and a file system commits simultaneous
/// requests together; one after the other, each would take some milliseconds. All run to their end; then the
/// first error is thrown.
void sync_together(std::span<const std::function<void()>> syncs);

/// Reads a whole file. Throws Error: EFBIG if it is larger than `max_bytes`, before memory is allocated,
/// ENOMEM, and the errors of opening and reading.
[[nodiscard]] std::vector<std::byte> read_whole(const std::string& path, std::int64_t max_bytes,
                                                device::Engine* engine = nullptr, int directory = -1);

/// Puts changes of names in a directory on stable storage.
void sync_directory(const std::string& path, int directory = -1);

}  // namespace outcore::store
