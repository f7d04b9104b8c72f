/** @file version.h
 *  @brief Version of the library. Part of outcore/outcore.h. */
#ifndef OUTCORE_C_VERSION_H
#define OUTCORE_C_VERSION_H

#include <stddef.h>
#include <stdint.h>

#include "outcore/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup version Version of the headers that a program was compiled with
 *  @{ */
#define OC_VERSION_MAJOR 0
#define OC_VERSION_MINOR 1
#define OC_VERSION_PATCH 0
/** One number that grows with the version. */
#define OC_VERSION (OC_VERSION_MAJOR * 1000000 + OC_VERSION_MINOR * 1000 + OC_VERSION_PATCH)
/** @} */

/** @brief Version of the library that the program runs with, encoded as #OC_VERSION. `text`, which may be
 * NULL, receives a text such as "0.1.0". */
OUTCORE_API int oc_version(const char** text);

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_C_VERSION_H */
