/** @file world.h
 *  @brief Worlds. Part of outcore/outcore.h. */
#ifndef OUTCORE_C_WORLD_H
#define OUTCORE_C_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "outcore/api.h"
#include "outcore/c/element_type.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup world Worlds: the processes that share files
 *
 *  Making and closing a world is collective, as are the calls that say so: all processes make them in the
 *  same order, with the same arguments, by one thread at a time. If they differ, or if one process fails, all
 *  get an error. @{ */

/** Options of a world. Zeros beside `size`, or a NULL pointer, mean the defaults. */
typedef struct oc_world_options {
  size_t size;               /**< sizeof of this structure. */
  int64_t memory_bytes;      /**< Budget of this process; 0: half of its share of the memory of its node. */
  const char* scratch;       /**< Directory for scratch; NULL or "": as for oc_eaf_open(). */
  int node_for_each_process; /**< Not 0: each process counts as a node, to test transfers between nodes. */
} oc_world_options;

/** @brief A world of this process alone.
 *  @param[out] world The handle, larger than 0.
 *  @return EINVAL (options), ENOENT (scratch directory). */
OUTCORE_API int oc_world_self(const oc_world_options* options, int* world);

/** @brief The processes of an MPI communicator. Collective.
 *
 *  MPI must be initialised with MPI_THREAD_MULTIPLE; the communicator is duplicated.
 *  @param[in] communicator Its Fortran handle: MPI_Comm_c2f(communicator).
 *  @return ENOTSUP (no MPI is loaded, or one that this build does not know; or one process could not load the
 * library that calls MPI: the same at all processes), EINVAL, ENOENT (scratch directory).
 */
OUTCORE_API int oc_world_mpi(int communicator, const oc_world_options* options, int* world);

/** @brief The processes of the job: those of MPI_COMM_WORLD if the program uses MPI, else this process alone.
 *  Collective.
 *  @return ENOTSUP (started by a launcher for several processes, but no MPI is loaded), EINVAL (MPI is not
 * initialised), and as oc_world_mpi(). */
OUTCORE_API int oc_world_job(const oc_world_options* options, int* world);

/** @brief Processes of equal color form a world of their own, ordered by key, then rank. Collective over
 * `whole`.
 *  @param[out] part The handle; 0 for a negative color.
 *  @return EINVAL (`part` is NULL), EBADF. */
OUTCORE_API int oc_world_split(int whole, int color, int key, int* part);

/** @brief Number of this process, and how many there are; either may be NULL.
 *  @return EBADF. */
OUTCORE_API int oc_world_rank(int world, int* rank, int* size);

/** @brief Waits, asleep, for all processes. Collective.
 *  @return EBADF. */
OUTCORE_API int oc_world_barrier(int world);

/** @defgroup reduction Operations of oc_world_reduce() on the values of all processes @{ */
#define OC_SUM 0
#define OC_MIN 1
#define OC_MAX 2
/** @} */

/** @brief Replaces each value by the sum, least or largest of the values of all processes. The result is the
 * same at all processes, bit by bit. Collective.
 *  @param[in] type #OC_FLOAT64 or #OC_INT64.
 *  @return EINVAL (type, operation, count; or they differ between processes), EBADF. */
OUTCORE_API int oc_world_reduce(int world, int type, int64_t count, void* values, int operation);

/** @brief Makes a counter of all processes, for dynamic distribution of tasks; initially zero. Collective.
 *  @return EINVAL (`counter` is NULL), EBADF. */
OUTCORE_API int oc_counter_create(int world, int* counter);
/** @brief Adds `count`; `before` receives the value before. Not collective; any thread.
 *  @return EINVAL (`before` is NULL), EBADF. */
OUTCORE_API int oc_counter_next(int counter, int64_t count, int64_t* before);
/** @brief Sets the counter back to zero. Collective.
 *  @return EBADF. */
OUTCORE_API int oc_counter_reset(int counter);
/** @brief Ends the handle. Not collective; every process does so before the world is closed.
 *  @return EBADF. */
OUTCORE_API int oc_counter_close(int counter);

/** @brief Makes a lock between processes, and threads. First come, first served; waits asleep. Collective.
 *  @return EINVAL (`lock` is NULL), EBADF. */
OUTCORE_API int oc_lock_create(int world, int* lock);
/** @brief Waits for the lock, and takes it.
 *  @return EBADF. */
OUTCORE_API int oc_lock_lock(int lock);
/** @brief Gives the lock to the next in line. EPERM if this process does not hold it. */
OUTCORE_API int oc_lock_unlock(int lock);
/** @brief Ends the handle. Not collective.
 *  @return EBADF. */
OUTCORE_API int oc_lock_close(int lock);

/** @brief Closes a world, before MPI_Finalize; close its files first. Collective.
 *
 *  Persistent arrays that are still open to write (no oc_dra_close(), oc_sparse_close()) are committed,
 * unless another process makes another collective call. The world is closed also when an error is returned:
 * an array then keeps its last commit. A process that ends without closing its world commits nothing.
 *  @return EBADF; ENOSPC, EIO, EINVAL: of a commit. */
OUTCORE_API int oc_world_close(int world);
/** @} */

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_C_WORLD_H */
