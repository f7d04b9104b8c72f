// Records what this process does to the files of a directory. The library that holds it stands before the C
// library, so that it sees the calls; nothing in Outcore knows of it. Requests of io_uring are not seen:
// without OUTCORE_ENGINE=threads nothing is recorded, and that is an error.
#pragma once

#include <string>

#include "crash/disk_model.hpp"

namespace crash {

/// From now on. `disk` is what the directory holds, of which some may not be safe; or nothing, and then the
/// directory is empty. One recording at a time. Syncs are noted, and otherwise left out: nothing depends on a
/// real disk.
void begin_recording(const std::string& directory, const Disk& disk = {});
/// The states that may be found from now on, a bit each.
void allow(std::uint64_t states);
[[nodiscard]] Log end_recording();

}  // namespace crash
