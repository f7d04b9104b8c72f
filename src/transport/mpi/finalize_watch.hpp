// Calls of MPI wait for all processes, for ever if one has died: MPI_Finalize, and what has no nonblocking
// form.
#pragma once

#include <span>

#include "transport/death_watch.hpp"

namespace outcore::transport::over_mpi {

/// From now on MPI_Finalize of this process ends the job if it still waits five seconds after a process has
/// died that the launcher started beside this one. One that ends well leaves MPI_Finalize as all do.
void watch_in_finalize();
/// The same for these processes of the own host (their numbers), however they were started.
void watch_in_finalize(std::span<const int> processes);

void abort_job();  ///< by MPI_Abort

/// While it lives, a call of MPI runs in this thread that waits for processes which `watch_in_finalize` was
/// told of. It ends the job as MPI_Finalize does.
class WatchedMpiCall : public WatchedCall {
 public:
  explicit WatchedMpiCall(const char* name);  ///< kept by the caller
};

}  // namespace outcore::transport::over_mpi
