// Messages between the processes of an MPI communicator.
#pragma once

#include <memory>
#include <vector>

#include "outcore/extend/transport.hpp"
#include "transport/mpi/session.hpp"

namespace outcore::transport::over_mpi {

/// Collective over `transport`, whose communicator is `comm`; `session_ranks`: the ranks of its processes in
/// the session. From the begin of MPI_Finalize on, all calls throw Error(ESHUTDOWN).
[[nodiscard]] std::unique_ptr<Messages> messages(Transport& transport, MPI_Comm comm,
                                                 std::shared_ptr<Session> session,
                                                 std::vector<int> session_ranks);

}  // namespace outcore::transport::over_mpi
