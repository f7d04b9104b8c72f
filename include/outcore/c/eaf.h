/** @file eaf.h
 *  @brief Exclusive access files. Part of outcore/outcore.h. */
#ifndef OUTCORE_C_EAF_H
#define OUTCORE_C_EAF_H

#include <stddef.h>
#include <stdint.h>

#include "outcore/api.h"
#include "outcore/c/file_hints.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How to open a file. Zeros beside `size`, or a NULL pointer, mean the defaults. */
typedef struct oc_eaf_options {
  size_t size;            /**< sizeof of this structure. */
  const char* scratch;    /**< Directory; NULL or "": $OUTCORE_SCRATCH, else the fastest node-local disk. */
  int keep;               /**< Not 0: the file is `scratch`/`name`, and outlives the process. */
  int page_cache;         /**< One of OC_PAGE_CACHE_*. */
  int64_t expected_bytes; /**< Hint, 0: unknown. More than is free: ENOSPC before anything is written. */
  int read_only; /**< Not 0, with `keep`: the file must exist, and is not written. The process needs no right
                    to write it, and its file system may be read-only. */
} oc_eaf_options;

/** @brief Opens a file, and creates it if this process has none of that name.
 *
 *  If the name was opened and closed before, the file has the same bytes; oc_eaf_delete() removes them.
 *  @param[in] name Not empty, without '/'.
 *  @param[in] options NULL: the defaults.
 *  @param[out] file The handle, larger than 0.
 *  @return EINVAL (name, options), ENOENT, ENOTDIR, EACCES, EROFS (scratch directory), ENOSPC, EMFILE; EACCES
 * also for a file that this process has open to read only.
 */
OUTCORE_API int oc_eaf_open(const char* name, const oc_eaf_options* options, int* file);

/** @brief Writes all of the buffer. Beyond the end the file grows, and bytes that were left out read as
 * zeros.
 *  @return EINVAL (negative offset or size), EBADF, EACCES (`read_only`), ENOSPC, EIO. */
OUTCORE_API int oc_eaf_write(int file, int64_t offset, const void* buffer, int64_t bytes);

/** @brief Reads into the buffer.
 *  @param[out] moved Bytes read: fewer than requested only at the end of the file. May be NULL; then fewer
 * bytes than requested are #OC_END_OF_FILE.
 *  @return EINVAL (negative offset or size), EBADF, EIO, #OC_END_OF_FILE. */
OUTCORE_API int oc_eaf_read(int file, int64_t offset, void* buffer, int64_t bytes, int64_t* moved);

/** @brief Begins a write, and returns within microseconds. The I/O goes on without further calls.
 *  @param[out] request The request, for oc_wait().
 *  @return EINVAL, EBADF, EACCES (`read_only`), ENOMEM; errors of the write come from oc_wait(). */
OUTCORE_API int oc_eaf_write_async(int file, int64_t offset, const void* buffer, int64_t bytes,
                                   int64_t* request);

/** @brief Begins a read, and returns within microseconds. The I/O goes on without further calls.
 *  @param[out] request The request, for oc_wait().
 *  @return EINVAL, EBADF, ENOMEM; errors of the read come from oc_wait(). */
OUTCORE_API int oc_eaf_read_async(int file, int64_t offset, void* buffer, int64_t bytes, int64_t* request);

/** @brief Puts all bytes written on stable storage. Returns the error of an earlier write kept in memory.
 *  @return EBADF, ENOSPC, EIO. */
OUTCORE_API int oc_eaf_flush(int file);

/** @brief Closes a handle. The bytes stay until the process ends, for the next open of the name.
 *
 *  Waits for everything under way. The handle is closed also when an error is returned.
 *  @return EBADF; ENOSPC, EIO (of a write that was kept in memory). */
OUTCORE_API int oc_eaf_close(int file);

/** @brief Closes a handle and removes the file.
 *  @return EBADF, EACCES (also for a handle that is `read_only`, which stays open). */
OUTCORE_API int oc_eaf_delete(int file);

/** @brief Length of the file, with everything written so far.
 *  @return EBADF, EINVAL (`bytes` is NULL). */
OUTCORE_API int oc_eaf_length(int file, int64_t* bytes);

/** @brief Sets the length of the file. New bytes read as zeros.
 *  @return EINVAL (negative), EBADF, EACCES (`read_only`), EFBIG, EIO. */
OUTCORE_API int oc_eaf_truncate(int file, int64_t bytes);

/** @brief Reserves space on the disk; the length becomes at least `bytes`.
 *  @return ENOSPC (there is not enough), EFBIG (no file is so long), EINVAL (negative), EBADF,
 *          EACCES (`read_only`). */
OUTCORE_API int oc_eaf_preallocate(int file, int64_t bytes);

/** @brief Tells whether an offset is at or beyond the end of the file.
 *  @param[out] at_end 1 if it is, else 0.
 *  @return EBADF, EINVAL (`at_end` is NULL). */
OUTCORE_API int oc_eaf_eof(int file, int64_t offset, int* at_end);

/** @brief Free space and type of the file system under a scratch directory.
 *  @param[in] scratch NULL or "": the default one.
 *  @param[out] free_bytes What this user may still write; may be NULL.
 *  @param[out] type Its name ("ext4", "xfs", "nfs"), cut to `type_size` with the final 0; may be NULL.
 *  @return ENOENT, ENOTDIR, EACCES. */
OUTCORE_API int oc_eaf_stat(const char* scratch, int64_t* free_bytes, char* type, size_t type_size);

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_C_EAF_H */
