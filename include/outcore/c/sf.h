/** @file sf.h
 *  @brief Shared files. Part of outcore/outcore.h. */
#ifndef OUTCORE_C_SF_H
#define OUTCORE_C_SF_H

#include <stddef.h>
#include <stdint.h>

#include "outcore/api.h"
#include "outcore/c/file_hints.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Hints for a shared file. Zeros beside `size`, or a NULL pointer, mean the defaults. */
typedef struct oc_sf_options {
  size_t size;                   /**< sizeof of this structure. */
  int64_t hard_limit_bytes;      /**< A write beyond it is EFBIG. 0: none. */
  int64_t soft_limit_bytes;      /**< Expected size, 0: unknown. More than is free: ENOSPC. */
  int64_t typical_request_bytes; /**< Size of most requests, which sets the stripe. 0: unknown. */
  int reserve;                   /**< Not 0: space for the soft limit is reserved at once. */
  int placement;                 /**< One of OC_PLACEMENT_*. */
  int components_per_node;       /**< Files on each node; 0: one for each process, at most 8. */
  int page_cache;                /**< One of OC_PAGE_CACHE_*. */
  /** Memory of this process for copies of data from other nodes, 0: none. With it, a process must call
   * oc_sf_sync() before it reads bytes again that others have written meanwhile. */
  int64_t client_cache_bytes;
} oc_sf_options;

/** An entry of a list: a byte range of a file, and memory of its size. */
typedef struct oc_sf_range {
  int64_t offset;
  void* buffer; /**< A write only reads from it. */
  int64_t bytes;
} oc_sf_range;

/** @brief Creates a shared file. Collective.
 *
 *  Nobody else can open the file by a name. It exists until oc_sf_close(), oc_sf_destroy(), or the end of the
 * job, also when that is killed.
 *  @param[in] name The name of the file in messages; not empty.
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
 *  @param[out] request The request, for oc_wait().
 *  @return As oc_sf_write(), or from oc_wait(). */
OUTCORE_API int oc_sf_write_async(int file, int64_t offset, const void* buffer, int64_t bytes,
                                  int64_t* request);

/** @brief Begins a read, and returns at once. The I/O goes on without further calls.
 *  @param[out] request The request, for oc_wait().
 *  @return As oc_sf_read(), or from oc_wait(). */
OUTCORE_API int oc_sf_read_async(int file, int64_t offset, void* buffer, int64_t bytes, int64_t* request);

/** @brief Writes all ranges of a list, as one request. They must not overlap.
 *  @param[in] ranges Needed during the call only; the buffers are in use as those of other requests.
 *  @return As oc_sf_write(); EINVAL also for no list. */
OUTCORE_API int oc_sf_writev(int file, int count, const oc_sf_range* ranges);

/** @brief Fills all ranges of a list, as one request: small ones that lie close together are read together.
 *  @return As oc_sf_read(); EINVAL also for no list. */
OUTCORE_API int oc_sf_readv(int file, int count, const oc_sf_range* ranges);

/** @brief Begins what oc_sf_writev() does. */
OUTCORE_API int oc_sf_writev_async(int file, int count, const oc_sf_range* ranges, int64_t* request);

/** @brief Begins what oc_sf_readv() does. */
OUTCORE_API int oc_sf_readv_async(int file, int count, const oc_sf_range* ranges, int64_t* request);

/** @brief The end of the file: the highest byte that any process has begun to write. Not collective.
 *  @return EBADF, EINVAL (`bytes` is NULL). */
OUTCORE_API int oc_sf_length(int file, int64_t* bytes);

/** @brief Makes everything that this process has written visible to all. Not collective.
 *  @return The error of a write that nobody waited for. */
OUTCORE_API int oc_sf_sync(int file);

/** @brief Puts everything written by any process on stable storage. Collective; returns errors as
 * oc_sf_sync().
 *  @return EBADF, EIO, ENOSPC. */
OUTCORE_API int oc_sf_flush(int file);

/** @brief Waits for everything and closes the file; its bytes are gone. Collective.
 *
 *  The handle is closed also when an error is returned: that of a write that nobody waited for, at any
 * process.
 *  @return EBADF, and as oc_sf_write(). */
OUTCORE_API int oc_sf_close(int file);

/** @brief As oc_sf_close(), but returns no errors of writes, for bytes that are not wanted. Collective. */
OUTCORE_API int oc_sf_destroy(int file);

/** @brief Free space and type of the file system that this node's part of the file lies on.
 *  @param[out] free_bytes,type,type_size As for oc_eaf_stat().
 *  @return EBADF. */
OUTCORE_API int oc_sf_stat(int file, int64_t* free_bytes, char* type, size_t type_size);

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_C_SF_H */
