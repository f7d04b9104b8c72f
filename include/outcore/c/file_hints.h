/** @file file_hints.h
 *  @brief Hints for files and for arrays on disk: use of the page cache, placement. Part of
 * outcore/outcore.h. */
#ifndef OUTCORE_C_FILE_HINTS_H
#define OUTCORE_C_FILE_HINTS_H

#include <stddef.h>
#include <stdint.h>

#include "outcore/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup page_cache Use of the page cache
 *  @{ */
#define OC_PAGE_CACHE_AUTO 0     /**< Chosen by the file's size and what the page cache holds. */
#define OC_PAGE_CACHE_BUFFERED 1 /**< Always through the page cache. */
#define OC_PAGE_CACHE_DIRECT 2   /**< Past it, except for unaligned ends. */
/** @} */

/** @defgroup placement Where the files lie that processes share @{ */
#define OC_PLACEMENT_AUTO 0   /**< Shared if all processes see the directory of the first, else local. */
#define OC_PLACEMENT_SHARED 1 /**< One directory that all see. */
#define OC_PLACEMENT_LOCAL 2  /**< A part on each node, which others reach through its processes. */
/** @} */

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_C_FILE_HINTS_H */
