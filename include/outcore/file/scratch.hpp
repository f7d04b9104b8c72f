// Scratch directories: where they are, whose they are, and what dead processes left in them.
#pragma once

#include <string>
#include <vector>

namespace outcore::file {

/// The scratch directory used when none is given: OUTCORE_SCRATCH, else the fastest writable, node-local,
/// disk-backed one of SLURM_TMPDIR, TMPDIR, /scratch/$USER, /local/$USER, /var/tmp, /tmp (distinct devices are
/// compared by a short write). Never silently the current directory. Throws Error(ENOENT) with the list of
/// candidates and why each was refused. Chosen once a process.
[[nodiscard]] const std::string& default_scratch();

/// Directory of this process inside `scratch`, made at first use and locked (flock) while the process lives,
/// so that anyone can tell a dead one. Removed at exit. Making it removes the stale ones of this user.
[[nodiscard]] const std::string& process_directory(const std::string& scratch);

/// Removes the directories of dead processes of this user in `scratch`; returns their paths.
std::vector<std::string> clean(const std::string& scratch);

}  // namespace outcore::file
