// MPI_Finalize waits for all processes of the job, for ever if one has died.
#pragma once

#include <span>

namespace outcore::transport::over_mpi {

/// From now on MPI_Finalize of this process ends the job if it still waits five seconds after one of these
/// processes of the own host (their numbers) has died. One that ends well leaves MPI_Finalize as all do.
void watch_in_finalize(std::span<const int> processes);

}  // namespace outcore::transport::over_mpi
