/** @file rf.h
 *  @brief Record files. Part of outcore/outcore.h. */
#ifndef OUTCORE_C_RF_H
#define OUTCORE_C_RF_H

#include <stddef.h>
#include <stdint.h>

#include "outcore/api.h"
#include "outcore/c/file_hints.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Hints for a record file. Zeros beside `size` and `records` mean the defaults. */
typedef struct oc_rf_options {
  size_t size;                  /**< sizeof of this structure. */
  int64_t records;              /**< Number of records, from 0 to records - 1. */
  int64_t hard_limit_bytes;     /**< Of the file; a put beyond it is EFBIG. 0: none. */
  int64_t soft_limit_bytes;     /**< Expected size, 0: unknown. More than is free: ENOSPC. */
  int64_t typical_record_bytes; /**< Sets the stripe, and the space a process takes. 0: unknown. */
  int placement;                /**< One of OC_PLACEMENT_*. */
  int page_cache;               /**< One of OC_PAGE_CACHE_*. */
} oc_rf_options;

/** @brief Creates a record file, without records. Collective; a scratch file, as shared files are.
 *
 *  Any process writes and reads any record at any time, without help of the others. Records are atomic: a get
 * returns the data of one put, never a mixture. A put that fails leaves the record as it was.
 *  @return EINVAL (name, hints, or hints that differ), EBADF (world), ENOSPC, ENOENT, EACCES (scratch). */
OUTCORE_API int oc_rf_create(int world, const char* name, const oc_rf_options* options, int* file);

/** @brief Writes a record of any size, in place of its previous version. It is visible to all on return.
 *  @return EINVAL (number, negative size), EFBIG (beyond the hard limit), EBADF, ENOSPC, EIO. */
OUTCORE_API int oc_rf_put(int file, int64_t record, const void* buffer, int64_t bytes);

/** @brief Reads a record into a buffer that is long enough. The rest of the buffer may be changed.
 *  @param[out] size Of the record; may be NULL.
 *  @return ENOENT (there is none), EMSGSIZE (longer than `bytes`), EINVAL (number), EBADF, EIO. */
OUTCORE_API int oc_rf_get(int file, int64_t record, void* buffer, int64_t bytes, int64_t* size);

/** @brief Begins a put. It takes effect when it has been waited for, or in oc_rf_sync().
 *  @return As oc_rf_put(), or from oc_wait(). */
OUTCORE_API int oc_rf_put_async(int file, int64_t record, const void* buffer, int64_t bytes,
                                int64_t* request);

/** @brief Begins a get.
 *  @return As oc_rf_get(), or from oc_wait(). */
OUTCORE_API int oc_rf_get_async(int file, int64_t record, void* buffer, int64_t bytes, int64_t* request);

/** @brief Size of a record. ENOENT if there is none. Not collective. */
OUTCORE_API int oc_rf_size(int file, int64_t record, int64_t* bytes);

/** @brief A length of a buffer that is enough for a record: at least its size, and at most a ninth and 64
 * bytes more. Reads nothing from the disk. ENOENT if there is none. */
OUTCORE_API int oc_rf_capacity(int file, int64_t record, int64_t* bytes);

/** @brief Removes a record, if there is one. Not collective.
 *  @return EINVAL (number), EBADF. */
OUTCORE_API int oc_rf_erase(int file, int64_t record);

/** @brief Makes all puts of this process complete and visible to all. Not collective.
 *  @return The error of a put that nobody waited for. */
OUTCORE_API int oc_rf_sync(int file);

/** @brief Does oc_rf_sync() at all processes, and puts all records on stable storage. Collective.
 *  @return EBADF, and as oc_rf_sync(). */
OUTCORE_API int oc_rf_flush(int file);

/** @brief Waits for everything and closes the file; its records are gone. Collective.
 *
 *  The handle is closed also when an error is returned.
 *  @return EBADF, and as oc_rf_sync(), of any process. */
OUTCORE_API int oc_rf_close(int file);

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_C_RF_H */
