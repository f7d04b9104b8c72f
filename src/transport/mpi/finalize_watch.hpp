// Watches calls of MPI that wait for all processes, for ever if one has died: MPI_Finalize, and calls without
// a nonblocking form.
#pragma once

#include <span>

#include "transport/death_watch.hpp"

namespace outcore::transport::over_mpi {

/// From now on MPI_Finalize of this process ends the job if it still waits five seconds after another process
/// of the launcher has died. A process that ends normally leaves MPI_Finalize with all others.
void watch_in_finalize();
/// The same for processes of the own host, given by their numbers, however they were started.
void watch_in_finalize(std::span<const int> processes);

void abort_job();  ///< by MPI_Abort

/// While it lives, this thread runs a call of MPI that waits for the processes given to `watch_in_finalize`.
/// It ends the job as MPI_Finalize does.
class WatchedMpiCall : public WatchedCall {
 public:
  explicit WatchedMpiCall(const char* name);  ///< kept by the caller
};

}  // namespace outcore::transport::over_mpi
