/** @file dra.h
 *  @brief Disk resident arrays: N-dimensional arrays on disk. Part of outcore/outcore.h. */
#ifndef OUTCORE_C_DRA_H
#define OUTCORE_C_DRA_H

#include <stddef.h>
#include <stdint.h>

#include "outcore/api.h"
#include "outcore/c/element_type.h"
#include "outcore/c/file_hints.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Options of a new disk array. Zeros beside `size`, or a NULL pointer, mean the defaults. */
typedef struct oc_dra_options {
  size_t size;      /**< sizeof of this structure. */
  const char* path; /**< Directory of a persistent array, made here. NULL or "": scratch, which vanishes. */
  int overwrite; /**< Not 0: replace a persistent array that is there, with the first commit; else EEXIST. */
  int placement; /**< One of OC_PLACEMENT_*. */
  const int64_t* chunk;       /**< Shape of the unit of I/O; NULL: from `typical`. */
  const int64_t* typical;     /**< Shape of a typical section; NULL: reads of any shape. */
  const char* codec;          /**< "none" (also NULL), "blosc2" or "blosc2-lz4". */
  int64_t expected_bytes;     /**< How many bytes will be written, 0: all. More than is free: ENOSPC. */
  const char* metadata;       /**< What the array holds, a text in UTF-8; persistent arrays keep it. */
  int64_t cache_bytes;        /**< Memory for chunks that this process owns; 0: a part of the budget. */
  int64_t client_cache_bytes; /**< Memory for copies of others' chunks, until oc_dra_sync(). 0: none. */
} oc_dra_options;

/** @brief Creates an array of zeros on disk. Collective.
 *
 *  Boxes and memory are given as for oc_ga_create(). Transfers whose names have `_all` are collective: all
 * processes call with the same arguments, except memory and boxes of their own; if they differ, all get
 * EINVAL. The other transfers are for each process alone: any process moves any section at any time.
 *
 *  A persistent array holds its last commit, by oc_dra_flush(), oc_dra_close() or oc_world_close(), also when
 * a process is killed.
 *  @param[out] array The handle, larger than 0.
 *  @return EINVAL, EBADF (world), EEXIST, ENOENT, EACCES (path), ENOSPC (no room for the array). */
OUTCORE_API int oc_dra_create(int world, int type, int rank, const int64_t* shape,
                              const oc_dra_options* options, int* array);

/** @brief Opens a persistent array, made by any number of processes. Collective.
 *  @param[in] writable Not 0: open to write, which only one job at a time may.
 *  @return ENOENT (no array there), EIO (damaged), ENOTSUP (another version or byte order), EBUSY (another
 * job writes). */
OUTCORE_API int oc_dra_open(int world, const char* path, int writable, int* array);

/** @brief What an array is. Each place may be NULL; lists have room for `OC_MAX_RANK` numbers.
 *  @return EBADF. */
OUTCORE_API int oc_dra_inquire(int array, int* type, int* rank, int64_t* shape, int64_t* chunk);
/** @brief The metadata that oc_dra_create() or oc_dra_flush() was given; cut to `size` with the final 0.
 * Python reads and writes the same text; other values that Python has written are returned as JSON.
 *  @param[out] bytes Its length, without the final 0; may be NULL.
 *  @return EBADF. */
OUTCORE_API int oc_dra_metadata(int array, char* text, size_t size, int64_t* bytes);
/** @brief Bytes that the array takes on all disks. Collective.
 *  @param[out] bytes May be NULL.
 *  @return EBADF, EIO. */
OUTCORE_API int oc_dra_stored_bytes(int array, int64_t* bytes);

/** @brief Writes a box from a section of a global array, and waits. Collective.
 *  @param[in] order Axis k of the disk array runs along axis order[k] of the section; NULL: the same order.
 *  @return EINVAL, EBADF, EROFS, ENOSPC, EIO: the same at all processes. */
OUTCORE_API int oc_dra_write_all(int array, const int64_t* begin, const int64_t* end, int ga,
                                 const int64_t* ga_begin, const int64_t* ga_end, const int* order);
/** @brief Reads a box into a section of a global array, and waits. Collective.
 *  @return EINVAL, EBADF, EIO (also for damage that a checksum shows), ENOMEM: the same at all processes. */
OUTCORE_API int oc_dra_read_all(int array, const int64_t* begin, const int64_t* end, int ga,
                                const int64_t* ga_begin, const int64_t* ga_end, const int* order);
/** @brief Begins what oc_dra_write_all() does. The global array must not be changed before oc_wait(). */
OUTCORE_API int oc_dra_write_all_async(int array, const int64_t* begin, const int64_t* end, int ga,
                                       const int64_t* ga_begin, const int64_t* ga_end, const int* order,
                                       int64_t* request);
/** @brief Begins what oc_dra_read_all() does. The global array must not be used before oc_wait(). */
OUTCORE_API int oc_dra_read_all_async(int array, const int64_t* begin, const int64_t* end, int ga,
                                      const int64_t* ga_begin, const int64_t* ga_end, const int* order,
                                      int64_t* request);
/** @brief Every process writes a box of its own (an empty one: nothing) from its memory. Collective. Boxes
 * must not overlap. Exception: all boxes are the same, and so is the data in all memories.
 *  @return As oc_dra_write_all(). */
OUTCORE_API int oc_dra_write_blocks_all(int array, const int64_t* begin, const int64_t* end,
                                        const void* memory, const int64_t* stride_bytes);
/** @brief Every process reads a box of its own into its memory. Collective.
 *  @return As oc_dra_read_all(). */
OUTCORE_API int oc_dra_read_blocks_all(int array, const int64_t* begin, const int64_t* end, void* memory,
                                       const int64_t* stride_bytes);
/** @brief Begins what oc_dra_write_blocks_all() does. */
OUTCORE_API int oc_dra_write_blocks_all_async(int array, const int64_t* begin, const int64_t* end,
                                              const void* memory, const int64_t* stride_bytes,
                                              int64_t* request);
/** @brief Begins what oc_dra_read_blocks_all() does. */
OUTCORE_API int oc_dra_read_blocks_all_async(int array, const int64_t* begin, const int64_t* end,
                                             void* memory, const int64_t* stride_bytes, int64_t* request);

/** @brief Reads a box. A get sees every put that was complete when it began.
 *  @return EINVAL (outside), EBADF (closed, here or at an owner), EIO, ENOMEM. */
OUTCORE_API int oc_dra_get(int array, const int64_t* begin, const int64_t* end, void* memory,
                           const int64_t* stride_bytes);
/** @brief Writes a box. If it fails, elements in the box hold old or new values.
 *  @return EINVAL (outside), EBADF, EROFS (opened to read), ENOSPC, EIO, ENOMEM. */
OUTCORE_API int oc_dra_put(int array, const int64_t* begin, const int64_t* end, const void* memory,
                           const int64_t* stride_bytes);
/** @brief Adds alpha (NULL: one) times the memory to a box. Concurrent accumulates add up. Types of 4 bytes
 * and more.
 *  @return EINVAL (also for a smaller type), else as oc_dra_put(). */
OUTCORE_API int oc_dra_acc(int array, const int64_t* begin, const int64_t* end, const void* memory,
                           const int64_t* stride_bytes, const void* alpha);
/** @brief Begins what oc_dra_get() does. */
OUTCORE_API int oc_dra_get_async(int array, const int64_t* begin, const int64_t* end, void* memory,
                                 const int64_t* stride_bytes, int64_t* request);
/** @brief Begins what oc_dra_put() does. */
OUTCORE_API int oc_dra_put_async(int array, const int64_t* begin, const int64_t* end, const void* memory,
                                 const int64_t* stride_bytes, int64_t* request);
/** @brief Begins what oc_dra_acc() does. */
OUTCORE_API int oc_dra_acc_async(int array, const int64_t* begin, const int64_t* end, const void* memory,
                                 const int64_t* stride_bytes, const void* alpha, int64_t* request);
/** @brief Hints that a box will be read soon: its owners begin to read it. Returns at once; nothing to wait
 * for.
 *  @return EINVAL (outside), EBADF. */
OUTCORE_API int oc_dra_prefetch(int array, const int64_t* begin, const int64_t* end);

/** @brief Completes the puts of this process and makes them visible to all, and makes those of others visible
 * here.
 *  @return The error of a put that nobody waited for. */
OUTCORE_API int oc_dra_sync(int array);
/** @brief Puts everything on stable storage and commits it, with new metadata unless NULL. Collective.
 *  @return ENOSPC, EIO, EBADF, EINVAL (metadata): the same at all processes. */
OUTCORE_API int oc_dra_flush(int array, const char* metadata);
/** @brief Commits a persistent array, drops a scratch array. Collective. Also returns the error of a transfer
 * that nobody waited for. The handle is closed even then.
 *  @return EBADF; ENOSPC, EIO: the same at all processes. */
OUTCORE_API int oc_dra_close(int array);
/** @brief Closes without a commit, and deletes the files. Collective.
 *  @return EBADF, EROFS (opened to read), EIO, EACCES. */
OUTCORE_API int oc_dra_delete(int array);

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_C_DRA_H */
