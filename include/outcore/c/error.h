/** @file error.h
 *  @brief Return codes and texts of errors. Part of outcore/outcore.h. */
#ifndef OUTCORE_C_ERROR_H
#define OUTCORE_C_ERROR_H

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

/** @brief The full text of the last failure in this thread: rank, what was attempted, path, offset, sizes.
 * Empty if there was none; never NULL. It stays until the next failure in this thread. */
OUTCORE_API const char* oc_last_error(void);

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_C_ERROR_H */
