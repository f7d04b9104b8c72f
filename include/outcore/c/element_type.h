/** @file element_type.h
 *  @brief Types of array elements. Part of outcore/outcore.h. */
#ifndef OUTCORE_C_ELEMENT_TYPE_H
#define OUTCORE_C_ELEMENT_TYPE_H

#include <stddef.h>
#include <stdint.h>

#include "outcore/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup types Types of array elements; files store these numbers @{ */
#define OC_INT8 1
#define OC_INT16 2
#define OC_INT32 3
#define OC_INT64 4
#define OC_UINT8 5
#define OC_FLOAT32 6
#define OC_FLOAT64 7
#define OC_COMPLEX64 8  /**< Two floats: real and imaginary part. */
#define OC_COMPLEX128 9 /**< Two doubles. */
/** @} */

#define OC_MAX_RANK 8 /**< Dimensions of an array. */

/** @brief Size of an element in bytes; 0 for an invalid type. */
OUTCORE_API size_t oc_element_bytes(int type);

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_C_ELEMENT_TYPE_H */
