// Scratch directories: where they are, whose they are, and what dead processes left in them.
#pragma once

#include <string>
#include <vector>

#include "outcore/api.h"

namespace outcore::device {

/// The scratch directory used when none is given: OUTCORE_SCRATCH, else the fastest writable, node-local,
/// disk-backed one of SLURM_TMPDIR, TMPDIR, /scratch/$USER, /local/$USER, /var/tmp, /tmp (distinct devices
/// are compared by a short write and read). Never silently the current directory. OUTCORE_SCRATCH is taken as
/// it is, also in memory or on a network. Throws Error(ENOENT) with the list of candidates and why each was
/// refused. Chosen once per process.
[[nodiscard]] OUTCORE_API const std::string& default_scratch();

/// A candidate of `choose_scratch`: a path, and where it comes from (for messages).
struct ScratchCandidate {
  std::string source, path;
};
[[nodiscard]] OUTCORE_API std::string choose_scratch(const std::vector<ScratchCandidate>& candidates);

/// Resolves a directory for scratch and checks it. Throws Error: ENOENT (none given, or missing), ENOTDIR,
/// EACCES, EROFS. If `writes` is false, the right to write is not checked.
[[nodiscard]] OUTCORE_API std::string checked_scratch(const std::string& scratch, bool writes = true);

/// Directory of this process inside `scratch`, `outcore-<uid>-<host>-<pid>-<random>`. Made at first use and
/// locked (flock on the file `lock` in it) while the process lives, so that any process can tell whether its
/// owner is dead. Removed at exit. Making it removes directories of dead processes of this user. A forked
/// child gets its own.
[[nodiscard]] OUTCORE_API std::string process_directory(const std::string& scratch);

/// Removes the directories of this process with all their contents, as its exit would. For a process that is
/// ending, before it says so to others: a launcher may kill it as soon as another one has ended. Descriptors
/// of files there stay valid. `process_directory` makes a new one. What cannot be removed stays; no error.
OUTCORE_API void remove_process_directories();

/// Removes the directories of dead processes of this user on this host in `scratch`; returns their paths.
/// Removes nothing where the file system has no locks: there, no process can tell which owner is dead.
OUTCORE_API std::vector<std::string> clean(const std::string& scratch);

}  // namespace outcore::device
