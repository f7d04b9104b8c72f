// The processes of the job, according to the program and its launcher.
#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"

namespace outcore::transport {
namespace {

/// The Fortran handle of MPI_COMM_WORLD, a constant of the binary interface.
int communicator_of_job() {
  constexpr int of_mpich = 0x44000000, of_open_mpi = 0;
  return dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") ? of_open_mpi : of_mpich;
}

}  // namespace

std::unique_ptr<Transport> job() {
  if (dlsym(RTLD_DEFAULT, "MPI_Get_library_version")) return mpi(communicator_of_job());
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"})
    if (const char* const count = std::getenv(name); count && std::atoi(count) > 1)
      throw Error(ENOTSUP, {.attempted = "make the world of a job",
                            .detail = std::string(name) + " says that it has " + count +
                                      " processes, but the program is not linked to MPI"});
  return self();
}

}  // namespace outcore::transport
