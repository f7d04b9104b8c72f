// Messages between the processes of an MPI communicator.
#pragma once

#include <memory>

#include "outcore/transport/transport.hpp"
#include "transport/mpi/calls.hpp"

namespace outcore::transport::over_mpi {

/// Collective over `transport`, whose communicator is `comm`. From the begin of MPI_Finalize on all calls
/// throw Error(ESHUTDOWN).
[[nodiscard]] std::unique_ptr<Messages> messages(Transport& transport, MPI_Comm comm);

}  // namespace outcore::transport::over_mpi
