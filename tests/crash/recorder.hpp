// Records what this process does to the files of a directory. Its library is loaded before the C library, so
// that it sees the calls; nothing in Outcore knows of it. It does not see requests of io_uring: without
// OUTCORE_ENGINE=threads nothing is recorded, and that is an error.
#pragma once

#include <string>

#include "crash/disk_model.hpp"

namespace crash {

/// Begins to record. `disk` is the content of the directory, parts of which may not be safe; without content
/// the directory is empty. Only one recording is possible at a time. Syncs are recorded but not made: nothing
/// depends on a real disk.
void begin_recording(const std::string& directory, const Disk& disk = {});
/// The states that may be found from now on, one bit for each.
void allow(std::uint64_t states);
[[nodiscard]] Log end_recording();

}  // namespace crash
