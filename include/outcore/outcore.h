/** @file outcore.h
 *  @brief The C interface of Outcore: exclusive access files (EAF), shared files (SF) and record files (RF).
 *
 *  An exclusive access file is a byte-addressable scratch file of one process: integrals, intermediates,
 *  vectors. Two processes that open "ints" have two files. A file vanishes with its process, also when that
 *  is killed, unless it was opened to be kept.
 *
 *  A shared file is a byte-addressable scratch file of all processes of a world: created and closed by all
 *  together, read and written by any of them at any time. Bytes that nobody has written are zeros.
 *
 *  A record file keeps numbered records in a shared file: of any size each, and of another one when they are
 *  written again. Blocks of compressed vectors, say.
 *
 *  Source: the Exclusive Access Files and Shared Files of the ChemIO project (Nieplocha, Foster, Kendall,
 * "ChemIO: high-performance parallel I/O for computational chemistry applications", IJHPCA 12, 1998).
 *
 *  @section example Example
 *
 *      int file, code;
 *      int64_t request;
 *      if ((code = oc_eaf_open("ints", NULL, &file))) { fputs(oc_strerror(code), stderr); return 1; }
 *      oc_eaf_write(file, 0, values, bytes);
 *      oc_eaf_read_async(file, 0, other, bytes, &request);
 *      compute();
 *      oc_wait(request, NULL);
 *      oc_eaf_close(file);
 *
 *  The same for all processes of an MPI job:
 *
 *      oc_world_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), NULL, &world);
 *      oc_sf_create(world, "amplitudes", NULL, &file);
 *      oc_sf_write(file, rank * bytes, mine, bytes);
 *      oc_world_barrier(world);
 *      oc_sf_read(file, other * bytes, theirs, bytes);
 *      oc_sf_close(file);
 *      oc_world_close(world);
 *
 *  @section units Units
 *
 *  Offsets, sizes and lengths are bytes, 64 bits, and count from 0. Nothing needs to be aligned.
 *
 *  @section errors Errors
 *
 *  Every function returns #OC_OK (0), #OC_END_OF_FILE, or a positive errno value. The full text of the last
 *  failure in the calling thread (what, where, how much) is oc_strerror() of the code returned. The
 *  library never ends the process, and no C++ exception leaves it.
 *
 *  A write may be kept in memory and carried out later. If that fails, the next write, flush or close of the
 *  file returns the error.
 *
 *  @section threads Thread rules
 *
 *  - Different files may be used by different threads at any time.
 *  - One file: any calls of different threads are safe with one another, as those of pread(2) and pwrite(2)
 *    are. Requests on overlapping bytes, one of them a write, happen in an order that nobody knows.
 *  - A request may be waited for by any thread, but by one.
 *  - oc_eaf_close() and oc_eaf_delete() must come last; a call of another thread on that handle returns EBADF
 *    when it comes later.
 *
 *  @section caveats Caveats
 *
 *  - The buffer of a nonblocking request belongs to the library until the request has been waited for: do not
 *    write to it (read), nor free it, before. In Fortran, give it the ASYNCHRONOUS and TARGET attributes.
 *  - Each request must be waited for, also when oc_test() says that it is complete. Their number is
 *    limited by memory alone.
 *  - Handles are numbers that are never used twice, so one that was closed is recognised.
 *  - A child made by fork(2) shares nothing: it must open its own files.
 */
#ifndef OUTCORE_H
#define OUTCORE_H

#include <stddef.h>
#include <stdint.h>

#include "outcore/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup codes Return codes besides the values of errno
 *  @{ */
#define OC_OK 0           /**< Success. */
#define OC_END_OF_FILE -1 /**< The end of the file came before the last byte asked for. */
/** @} */

/** @brief Text for a return code; never NULL.
 *
 *  If the code is that of the last failure in this thread, its full text: what was attempted, on which path,
 *  at which offset, how much. The text is valid until the next call of this thread. */
OUTCORE_API const char* oc_strerror(int code);

/** @defgroup requests Requests: nonblocking operations under way, of every kind
 *  @{ */
/** @brief Waits until a request is done, and ends it.
 *  @param[out] bytes What was moved: fewer than asked for at the end of an exclusive file, the size of a
 * record. May be NULL; then fewer bytes than asked for are #OC_END_OF_FILE.
 *  @return EINVAL (no such request, or waited for before), or what the operation came to. */
OUTCORE_API int oc_wait(int64_t request, int64_t* bytes);

/** @brief Tells whether a request is done, without blocking. It must still be waited for.
 *  @param[out] done 1 if complete or failed, else 0. */
OUTCORE_API int oc_test(int64_t request, int* done);

/** @brief Waits for all requests of a list, of any kinds, and ends them; returns the error of the first that
 * failed. */
OUTCORE_API int oc_wait_all(int count, const int64_t* requests);

/** @brief Waits until one request of a list, of any kinds, is done. It must still be waited for, which
 * returns its error, if any.
 *  @param[out] index Its position in the list, from 0; the first of several.
 *  @return EINVAL (an empty list, no such request). */
OUTCORE_API int oc_wait_any(int count, const int64_t* requests, int* index);
/** @} */

/** @defgroup page_cache Use of the page cache
 *  @{ */
#define OC_PAGE_CACHE_AUTO 0     /**< What suits the file's size and what is in memory already. */
#define OC_PAGE_CACHE_BUFFERED 1 /**< Always through the page cache. */
#define OC_PAGE_CACHE_DIRECT 2   /**< Past it, but for ragged ends. */
/** @} */

/** How to open a file. All bytes zero, or a NULL pointer, mean the defaults. */
typedef struct oc_eaf_options {
  const char* scratch;    /**< Directory; NULL or "": $OUTCORE_SCRATCH, else the fastest node-local disk. */
  int keep;               /**< Not 0: the file is `scratch`/`name`, and outlives the process. */
  int page_cache;         /**< One of OC_PAGE_CACHE_*. */
  int64_t expected_bytes; /**< Hint, 0: unknown. More than is free: ENOSPC, before anything is written. */
} oc_eaf_options;

/** @brief Opens a file, and creates it if this process has none of that name.
 *
 *  A name that was closed before is found again with its bytes; oc_eaf_delete() ends it.
 *  @param[in] name Not empty, without '/'.
 *  @param[in] options NULL: the defaults.
 *  @param[out] file The handle, larger than 0.
 *  @return EINVAL (name, options), ENOENT, ENOTDIR, EACCES, EROFS (scratch directory), ENOSPC, EMFILE.
 */
OUTCORE_API int oc_eaf_open(const char* name, const oc_eaf_options* options, int* file);

/** @brief Writes all of the buffer. Beyond the end the file grows, and what was left out reads as zeros.
 *  @return EINVAL (negative offset or size), EBADF, ENOSPC, EIO. */
OUTCORE_API int oc_eaf_write(int file, int64_t offset, const void* buffer, int64_t bytes);

/** @brief Reads into the buffer.
 *  @param[out] moved Bytes read: fewer than asked for only at the end of the file. May be NULL; then fewer
 *              bytes than asked for are #OC_END_OF_FILE.
 *  @return EINVAL (negative offset or size), EBADF, EIO, #OC_END_OF_FILE. */
OUTCORE_API int oc_eaf_read(int file, int64_t offset, void* buffer, int64_t bytes, int64_t* moved);

/** @brief Begins a write, and returns within microseconds. The I/O goes on without further calls.
 *  @param[out] request The request, for oc_wait(). */
OUTCORE_API int oc_eaf_write_async(int file, int64_t offset, const void* buffer, int64_t bytes,
                                   int64_t* request);

/** @brief Begins a read, and returns within microseconds. The I/O goes on without further calls.
 *  @param[out] request The request, for oc_wait(). */
OUTCORE_API int oc_eaf_read_async(int file, int64_t offset, void* buffer, int64_t bytes, int64_t* request);

/** @brief Puts all bytes written on stable storage. Returns the error of an earlier write kept in memory. */
OUTCORE_API int oc_eaf_flush(int file);

/** @brief Closes a handle. The bytes stay until the process ends, for the next open of the name.
 *
 *  Waits for everything under way. The handle is closed also when an error is returned. */
OUTCORE_API int oc_eaf_close(int file);

/** @brief Closes a handle and removes the file. */
OUTCORE_API int oc_eaf_delete(int file);

/** @brief Length of the file, with everything written so far. */
OUTCORE_API int oc_eaf_length(int file, int64_t* bytes);

/** @brief Sets the length of the file. Where it grows it reads as zeros. */
OUTCORE_API int oc_eaf_truncate(int file, int64_t bytes);

/** @brief Reserves space on the disk; the length becomes at least `bytes`. ENOSPC if there is not enough. */
OUTCORE_API int oc_eaf_preallocate(int file, int64_t bytes);

/** @brief Tells whether an offset is at or beyond the end of the file.
 *  @param[out] at_end 1 if it is, else 0. */
OUTCORE_API int oc_eaf_eof(int file, int64_t offset, int* at_end);

/** @brief Free space and type of the file system under a scratch directory.
 *  @param[in] scratch NULL or "": the default one.
 *  @param[out] free_bytes What this user may still write; may be NULL.
 *  @param[out] type Its name ("ext4", "xfs", "nfs"), cut to `type_size` with the final 0; may be NULL. */
OUTCORE_API int oc_eaf_stat(const char* scratch, int64_t* free_bytes, char* type, size_t type_size);

/** @defgroup world Worlds: the processes that share files
 *
 *  Making and closing one is collective, as are the calls that say so: all processes make them in the same
 *  order, with the same arguments, by one thread at a time. Where they differ, or where one has a problem,
 * all get an error.
 *  @{ */

/** Options of a world. All bytes zero, or a NULL pointer, mean the defaults. */
typedef struct oc_world_options {
  int64_t memory_bytes;      /**< Budget of this process; 0: half of its share of the memory of its node. */
  const char* scratch;       /**< Directory for scratch; NULL or "": as for oc_eaf_open(). */
  int node_for_each_process; /**< Not 0: each process counts as a node, to try what happens between nodes. */
} oc_world_options;

/** @brief A world of this process alone.
 *  @param[out] world The handle, larger than 0. */
OUTCORE_API int oc_world_self(const oc_world_options* options, int* world);

/** @brief The processes of an MPI communicator. Collective.
 *
 *  MPI must be initialised with MPI_THREAD_MULTIPLE; the communicator is duplicated.
 *  @param[in] communicator Its Fortran handle: MPI_Comm_c2f(communicator).
 *  @return ENOTSUP (no MPI is loaded, or not one that this build knows), EINVAL, ENOENT (scratch directory).
 */
OUTCORE_API int oc_world_mpi(int communicator, const oc_world_options* options, int* world);

/** @brief Number of this process, and how many there are; either may be NULL. */
OUTCORE_API int oc_world_rank(int world, int* rank, int* size);

/** @brief Waits, asleep, for all processes. Collective. */
OUTCORE_API int oc_world_barrier(int world);

/** @brief Closes a world, before MPI_Finalize; close its files first. Collective. */
OUTCORE_API int oc_world_close(int world);
/** @} */

/** @defgroup placement Where the files lie that processes have in common
 *  @{ */
#define OC_PLACEMENT_AUTO 0   /**< Shared if all processes see the directory of the first, else local. */
#define OC_PLACEMENT_SHARED 1 /**< One directory that all see. */
#define OC_PLACEMENT_LOCAL 2  /**< A part on each node, which others reach through its processes. */
/** @} */

/** Hints for a shared file. All bytes zero, or a NULL pointer, mean the defaults. */
typedef struct oc_sf_options {
  int64_t hard_limit_bytes;      /**< A write beyond it is EFBIG. 0: none. */
  int64_t soft_limit_bytes;      /**< Size it will have, 0: unknown. More than is free: ENOSPC. */
  int64_t typical_request_bytes; /**< Size of most requests, which sets the stripe. 0: unknown. */
  int reserve;                   /**< Not 0: space for the soft limit is reserved at once. */
  int placement;                 /**< One of OC_PLACEMENT_*. */
  int components_per_node;       /**< Files on each node; 0: one for each process, at most 8. */
  int page_cache;                /**< One of OC_PAGE_CACHE_*. */
  /** Memory of this process for copies of what lies on other nodes, 0: none. With it, a process that reads
   * what others have written since it read there before has to call oc_sf_sync() first. */
  int64_t client_cache_bytes;
} oc_sf_options;

/** A byte range of a file, and memory of its size: an entry of a list. */
typedef struct oc_sf_range {
  int64_t offset;
  void* buffer; /**< A write only reads from it. */
  int64_t bytes;
} oc_sf_range;

/** @brief Creates a shared file. Collective.
 *
 *  It has no name that others could open; it is there until oc_sf_close(), oc_sf_destroy(), or the end of the
 * job, also when that is killed.
 *  @param[in] name What messages call it; not empty.
 *  @param[out] file The handle, larger than 0.
 *  @return EINVAL (name, hints, or hints that differ), EBADF (world), ENOSPC, ENOENT, EACCES (scratch). */
OUTCORE_API int oc_sf_create(int world, const char* name, const oc_sf_options* options, int* file);

/** @brief Writes all of the buffer, at any offset. It is visible to all processes on return.
 *  @return EINVAL (negative offset or size), EFBIG (beyond the hard limit), EBADF, ENOSPC, EIO. */
OUTCORE_API int oc_sf_write(int file, int64_t offset, const void* buffer, int64_t bytes);

/** @brief Fills the buffer. Bytes that nobody has written are zeros.
 *  @return EINVAL (negative offset or size; beyond the highest byte that any process has begun to write),
 * EBADF, EIO. */
OUTCORE_API int oc_sf_read(int file, int64_t offset, void* buffer, int64_t bytes);

/** @brief Begins a write, and returns at once. The I/O goes on without further calls.
 *
 *  It is visible to all when it has been waited for, or after oc_sf_sync().
 *  @param[out] request The request, for oc_wait(). */
OUTCORE_API int oc_sf_write_async(int file, int64_t offset, const void* buffer, int64_t bytes,
                                  int64_t* request);

/** @brief Begins a read, and returns at once. The I/O goes on without further calls.
 *  @param[out] request The request, for oc_wait(). */
OUTCORE_API int oc_sf_read_async(int file, int64_t offset, void* buffer, int64_t bytes, int64_t* request);

/** @brief Writes all ranges of a list, as one request. They must not overlap.
 *  @param[in] ranges Needed during the call only; their buffers as those of other requests. */
OUTCORE_API int oc_sf_writev(int file, int count, const oc_sf_range* ranges);

/** @brief Fills all ranges of a list, as one request: small ones that lie close together are read together.
 */
OUTCORE_API int oc_sf_readv(int file, int count, const oc_sf_range* ranges);

/** @brief Begins what oc_sf_writev() does. */
OUTCORE_API int oc_sf_writev_async(int file, int count, const oc_sf_range* ranges, int64_t* request);

/** @brief Begins what oc_sf_readv() does. */
OUTCORE_API int oc_sf_readv_async(int file, int count, const oc_sf_range* ranges, int64_t* request);

/** @brief The end of the file: the highest byte that any process has begun to write. Not collective. */
OUTCORE_API int oc_sf_length(int file, int64_t* bytes);

/** @brief Makes everything that this process has written visible to all. Not collective.
 *  @return The error of a write that nobody waited for. */
OUTCORE_API int oc_sf_sync(int file);

/** @brief Puts everything written by any process on stable storage. Collective; returns errors as
 * oc_sf_sync(). */
OUTCORE_API int oc_sf_flush(int file);

/** @brief Waits for everything and closes the file; its bytes are gone. Collective.
 *
 *  The handle is closed also when an error is returned: that of a write that nobody waited for, at any
 * process. */
OUTCORE_API int oc_sf_close(int file);

/** @brief As oc_sf_close(), for bytes that are not wanted: without the errors of writes. Collective. */
OUTCORE_API int oc_sf_destroy(int file);

/** @brief Free space and type of the file system that this node's part of the file lies on.
 *  @param[out] free_bytes,type,type_size As for oc_eaf_stat(). */
OUTCORE_API int oc_sf_stat(int file, int64_t* free_bytes, char* type, size_t type_size);

/** Hints for a record file. All bytes zero but `records` mean the defaults. */
typedef struct oc_rf_options {
  int64_t records;              /**< They are numbered 0 to records - 1. */
  int64_t hard_limit_bytes;     /**< Of the file; a put beyond it is EFBIG. 0: none. */
  int64_t soft_limit_bytes;     /**< Size it will have, 0: unknown. More than is free: ENOSPC. */
  int64_t typical_record_bytes; /**< Sets the stripe, and what a process takes at once. 0: unknown. */
  int placement;                /**< One of OC_PLACEMENT_*. */
  int page_cache;               /**< One of OC_PAGE_CACHE_*. */
} oc_rf_options;

/** @brief Creates a record file, without records. Collective; a scratch file, as shared files are.
 *
 *  Any process writes and reads any record at any time, without help of the others. A record is a whole: a
 *  get returns what one put wrote, never a mixture. A put that fails leaves the record as it was.
 *  @return EINVAL (name, hints, or hints that differ), EBADF (world), ENOSPC, ENOENT, EACCES (scratch). */
OUTCORE_API int oc_rf_create(int world, const char* name, const oc_rf_options* options, int* file);

/** @brief Writes a record, of any size, in place of what it was before. It is visible to all on return.
 *  @return EINVAL (number, negative size), EFBIG (beyond the hard limit), EBADF, ENOSPC, EIO. */
OUTCORE_API int oc_rf_put(int file, int64_t record, const void* buffer, int64_t bytes);

/** @brief Reads a record into a buffer that is long enough. What lies behind it there may be changed.
 *  @param[out] size Of the record; may be NULL.
 *  @return ENOENT (there is none), EMSGSIZE (longer than `bytes`), EINVAL (number), EBADF, EIO. */
OUTCORE_API int oc_rf_get(int file, int64_t record, void* buffer, int64_t bytes, int64_t* size);

/** @brief Begins a put. It takes effect when it has been waited for, or in oc_rf_sync(). */
OUTCORE_API int oc_rf_put_async(int file, int64_t record, const void* buffer, int64_t bytes,
                                int64_t* request);

/** @brief Begins a get. */
OUTCORE_API int oc_rf_get_async(int file, int64_t record, void* buffer, int64_t bytes, int64_t* request);

/** @brief Size of a record. ENOENT if there is none. Not collective. */
OUTCORE_API int oc_rf_size(int file, int64_t record, int64_t* bytes);

/** @brief How long a buffer for a record must be: its size, and at most a ninth and 64 bytes more. Reads
 * nothing from the disk. ENOENT if there is none. */
OUTCORE_API int oc_rf_capacity(int file, int64_t record, int64_t* bytes);

/** @brief Removes a record, if there is one. Not collective. */
OUTCORE_API int oc_rf_erase(int file, int64_t record);

/** @brief Makes all puts of this process complete and visible to all. Not collective.
 *  @return The error of a put that nobody waited for. */
OUTCORE_API int oc_rf_sync(int file);

/** @brief oc_rf_sync() of all processes, and on stable storage. Collective. */
OUTCORE_API int oc_rf_flush(int file);

/** @brief Waits for everything and closes the file; its records are gone. Collective.
 *
 *  The handle is closed also when an error is returned. */
OUTCORE_API int oc_rf_close(int file);

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_H */
