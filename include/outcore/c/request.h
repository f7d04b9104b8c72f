/** @file request.h
 *  @brief Requests: one kind of handle for all nonblocking operations. Part of outcore/outcore.h. */
#ifndef OUTCORE_C_REQUEST_H
#define OUTCORE_C_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "outcore/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup requests Requests: nonblocking operations under way, of every kind
 *  @{ */
/** @brief Waits until a request is done, and ends it.
 *  @param[out] bytes Bytes moved: fewer than requested at the end of an exclusive file; for a record, its
 * size. May be NULL; then fewer bytes than requested are #OC_END_OF_FILE.
 *  @return EINVAL (no such request, or waited for before), or what the operation returns. */
OUTCORE_API int oc_wait(int64_t request, int64_t* bytes);

/** @brief Tells whether a request is done, without blocking. It must still be waited for.
 *  @param[out] done 1 if complete or failed, else 0.
 *  @return EINVAL (no such request, `done` is NULL). */
OUTCORE_API int oc_test(int64_t request, int* done);

/** @brief Waits for all requests of a list, of any kinds, and ends them; returns the error of the first that
 * failed.
 *  @return EINVAL (no list, no such request), or the error of the first that failed. */
OUTCORE_API int oc_wait_all(int count, const int64_t* requests);

/** @brief Waits until one request of a list, of any kinds, is done. It must still be waited for, which
 * returns its error, if any.
 *  @param[out] index Its position in the list, from 0; the first of several.
 *  @return EINVAL (an empty list, no such request). */
OUTCORE_API int oc_wait_any(int count, const int64_t* requests, int* index);
/** @} */

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_C_REQUEST_H */
