// One-sided memory between nodes: an MPI window.
#pragma once

#include <memory>
#include <vector>

#include "outcore/extend/transport.hpp"
#include "transport/mpi/session.hpp"

namespace outcore::transport::over_mpi {

/// Collective over `transport`, whose communicator is `comm`; `session_ranks`: the ranks of its processes in
/// the session.
[[nodiscard]] std::unique_ptr<Segment> window(Transport& transport, MPI_Comm comm, std::size_t size_bytes,
                                              std::shared_ptr<Session> session,
                                              std::vector<int> session_ranks);

}  // namespace outcore::transport::over_mpi
