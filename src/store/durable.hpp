// Small files that are there in full or not at all, and what waits for stable storage.
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

// `directory`: a descriptor of the one that the files lie in, whose names are then looked up there (see
// device::OpenOptions::directory); -1: the one that the path names.

/// When this returns the file holds `bytes`, on stable storage; if it throws, or the machine stops meanwhile,
/// it holds those or what it held before. Written to a file beside it (`path` + ".new", which a crash may
/// leave and the next call overwrites), which then takes its name. One writer at a time.
/// `replaced`: set once the file may hold the new bytes, also if it throws after that.
void write_durably(const std::string& path, std::span<const std::byte> bytes,
                   device::Engine* engine = nullptr, bool* replaced = nullptr, int directory = -1);

/// Gives a file another name, in place of what has it, on stable storage. `renamed`: as `replaced` above.
void rename_durably(const std::string& from, const std::string& to, bool* renamed = nullptr,
                    int directory = -1);

/// For a file that is of no use before another one names it: written, but on stable storage only after its
/// `flush` and sync_directory. A new file: what had its name loses it, and a symbolic link is not followed.
[[nodiscard]] device::File write_unsynced(const std::string& path, std::span<const std::byte> bytes,
                                          device::Engine* engine = nullptr, int directory = -1);

/// Runs all of these at the same time. Each waits for stable storage: a file system commits together what it
/// is asked for together; one after the other, each would take some milliseconds. All are run to their
/// end; then the first error is thrown.
void sync_together(std::span<const std::function<void()>> syncs);

/// All of a file. Throws Error: EFBIG if it is larger than `max_bytes`, before memory is taken for it,
/// ENOMEM, and what opening and reading throw.
[[nodiscard]] std::vector<std::byte> read_whole(const std::string& path, std::int64_t max_bytes,
                                                device::Engine* engine = nullptr, int directory = -1);

/// Names made in, and removed from, a directory are on stable storage.
void sync_directory(const std::string& path, int directory = -1);

}  // namespace outcore::store
