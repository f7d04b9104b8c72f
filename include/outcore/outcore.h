/** @file outcore.h
 *  @brief The C interface of Outcore: exclusive access files (EAF).
 *
 *  An exclusive access file is a byte-addressable scratch file of one process: integrals, intermediates,
 *  vectors. Two processes that open "ints" have two files. A file vanishes with its process, also when that
 *  is killed, unless it was opened to be kept.
 *
 *  Source: the Exclusive Access Files of the ChemIO project (Nieplocha, Foster, Kendall, "ChemIO:
 *  high-performance parallel I/O for computational chemistry applications", IJHPCA 12, 1998).
 *
 *  @section example Example
 *
 *      int file, code;
 *      int64_t request;
 *      if ((code = oc_eaf_open("ints", NULL, &file))) { fputs(oc_eaf_strerror(code), stderr); return 1; }
 *      oc_eaf_write(file, 0, values, bytes);
 *      oc_eaf_aread(file, 0, other, bytes, &request);
 *      compute();
 *      oc_eaf_wait(request, NULL);
 *      oc_eaf_close(file);
 *
 *  @section units Units
 *
 *  Offsets, sizes and lengths are bytes, 64 bits, and count from 0. Nothing needs to be aligned.
 *
 *  @section errors Errors
 *
 *  Every function returns #OC_OK (0), #OC_END_OF_FILE, or a positive errno value. The full text of the last
 *  failure in the calling thread (what, where, how much) is oc_eaf_strerror() of the code returned. The
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
 *  - Each request must be waited for, also when oc_eaf_probe() says that it is complete. Their number is
 *    limited by memory alone.
 *  - Handles are numbers that are never used twice, so one that was closed is recognised.
 *  - A child made by fork(2) shares nothing: it must open its own files.
 */
#ifndef OUTCORE_H
#define OUTCORE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup codes Return codes besides the values of errno
 *  @{ */
#define OC_OK 0           /**< Success. */
#define OC_END_OF_FILE -1 /**< The end of the file came before the last byte asked for. */
/** @} */

/** @defgroup cache Use of the page cache
 *  @{ */
#define OC_CACHE_AUTOMATIC 0 /**< What suits the file's size and what is in memory already. */
#define OC_CACHE_BUFFERED 1  /**< Always through the page cache. */
#define OC_CACHE_DIRECT 2    /**< Past it, but for ragged ends. */
/** @} */

/** How to open a file. All bytes zero, or a NULL pointer, mean the defaults. */
typedef struct oc_eaf_options {
  const char* scratch;    /**< Directory; NULL or "": $OUTCORE_SCRATCH, else the fastest node-local disk. */
  int keep;               /**< Not 0: the file is `scratch`/`name`, and outlives the process. */
  int cache;              /**< One of OC_CACHE_*. */
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
int oc_eaf_open(const char* name, const oc_eaf_options* options, int* file);

/** @brief Writes all of the buffer. Beyond the end the file grows, and what was left out reads as zeros.
 *  @return EINVAL (negative offset or size), EBADF, ENOSPC, EIO. */
int oc_eaf_write(int file, int64_t offset, const void* buffer, int64_t bytes);

/** @brief Reads into the buffer.
 *  @param[out] moved Bytes read: fewer than asked for only at the end of the file. May be NULL; then fewer
 *              bytes than asked for are #OC_END_OF_FILE.
 *  @return EINVAL (negative offset or size), EBADF, EIO, #OC_END_OF_FILE. */
int oc_eaf_read(int file, int64_t offset, void* buffer, int64_t bytes, int64_t* moved);

/** @brief Begins a write, and returns within microseconds. The I/O goes on without further calls.
 *  @param[out] request The request, for oc_eaf_wait(). */
int oc_eaf_awrite(int file, int64_t offset, const void* buffer, int64_t bytes, int64_t* request);

/** @brief Begins a read, and returns within microseconds. The I/O goes on without further calls.
 *  @param[out] request The request, for oc_eaf_wait(). */
int oc_eaf_aread(int file, int64_t offset, void* buffer, int64_t bytes, int64_t* request);

/** @brief Waits until a request is complete, and ends it.
 *  @param[out] moved As for oc_eaf_read(); may be NULL.
 *  @return EINVAL (no such request, or waited for before), or what the read or write came to. */
int oc_eaf_wait(int64_t request, int64_t* moved);

/** @brief Tells whether a request is complete, without blocking. It must still be waited for.
 *  @param[out] done 1 if complete or failed, else 0. */
int oc_eaf_probe(int64_t request, int* done);

/** @brief Puts all bytes written on stable storage. Returns the error of an earlier write kept in memory. */
int oc_eaf_flush(int file);

/** @brief Closes a handle. The bytes stay until the process ends, for the next open of the name.
 *
 *  Waits for everything under way. The handle is closed also when an error is returned. */
int oc_eaf_close(int file);

/** @brief Closes a handle and removes the file. */
int oc_eaf_delete(int file);

/** @brief Length of the file, with everything written so far. */
int oc_eaf_length(int file, int64_t* bytes);

/** @brief Sets the length of the file. Where it grows it reads as zeros. */
int oc_eaf_truncate(int file, int64_t bytes);

/** @brief Reserves space on the disk; the length becomes at least `bytes`. ENOSPC if there is not enough. */
int oc_eaf_preallocate(int file, int64_t bytes);

/** @brief Tells whether an offset is at or beyond the end of the file.
 *  @param[out] at_end 1 if it is, else 0. */
int oc_eaf_eof(int file, int64_t offset, int* at_end);

/** @brief Free space and type of the file system under a scratch directory.
 *  @param[in] scratch NULL or "": the default one.
 *  @param[out] free_bytes What this user may still write; may be NULL.
 *  @param[out] type Its name ("ext4", "xfs", "nfs"), cut to `type_size` with the final 0; may be NULL. */
int oc_eaf_stat(const char* scratch, int64_t* free_bytes, char* type, size_t type_size);

/** @brief Text for a return code; never NULL.
 *
 *  If the code is that of the last failure in this thread, its full text: what was attempted, on which path,
 *  at which offset, how much. The text is valid until the next call of this thread. */
const char* oc_eaf_strerror(int code);

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_H */
