// MPI as Outcore needs it, in unchanged programs. A program that initialises MPI for one thread gets it for
// several, and Global Arrays cannot free memory while a transfer uses it. These names take precedence over
// those of the MPI library, because liboutcore_pario is linked, or preloaded, before it.

#include <dlfcn.h>

#include "compat/shared.hpp"

namespace {

constexpr int thread_multiple = 3;  // in the binary interfaces of MPICH and Open MPI

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

OUTCORE_CLASSIC int MPI_Init_thread(int* count, char*** arguments, int /*required*/, int* provided) {
  return next<int(int*, char***, int, int*)>("MPI_Init_thread")(count, arguments, thread_multiple, provided);
}

OUTCORE_CLASSIC int MPI_Init(int* count, char*** arguments) {
  int provided = 0;
  return MPI_Init_thread(count, arguments, thread_multiple, &provided);
}

/// The interfaces of Fortran, whose integers are of the C type `int` in any case.
OUTCORE_CLASSIC void mpi_init_thread_(const int* /*required*/, int* provided, int* error) {
  next<void(const int*, int*, int*)>("mpi_init_thread_")(&thread_multiple, provided, error);
}

OUTCORE_CLASSIC void mpi_init_(int* error) {
  int provided = 0;
  mpi_init_thread_(&thread_multiple, &provided, error);
}

/// Global Arrays frees the memory of an array by this function.
OUTCORE_CLASSIC int MPI_Win_free(void* window) {
  outcore::compat::finish_transfers_of_destroyed_arrays();
  return next<int(void*)>("MPI_Win_free")(window);
}
