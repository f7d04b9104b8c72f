/** @file ga.h
 *  @brief Global arrays: N-dimensional arrays in the memory of all processes, reached one-sidedly. Part of
 * outcore/outcore.h. */
#ifndef OUTCORE_C_GA_H
#define OUTCORE_C_GA_H

#include <stddef.h>
#include <stdint.h>

#include "outcore/api.h"
#include "outcore/c/element_type.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup distribution Which process holds which elements
 *  @{ */
#define OC_DISTRIBUTION_REGULAR 0      /**< Blocks as equal as can be, nearly cubic. */
#define OC_DISTRIBUTION_IRREGULAR 1    /**< Blocks that begin where the program says. */
#define OC_DISTRIBUTION_BLOCK_CYCLIC 2 /**< Blocks dealt out in turn, as ScaLAPACK does. */
/** @} */

/** Options of a global array. Zeros beside `size`, or a NULL pointer, mean the defaults. Lists have one
 * number for each dimension, except `begins`. */
typedef struct oc_ga_options {
  size_t size;           /**< sizeof of this structure. */
  int distribution;      /**< One of OC_DISTRIBUTION_*. */
  const int64_t* blocks; /**< Irregular: number of blocks. Block-cyclic: shape of a block. Regular: NULL. */
  const int64_t*
      begins; /**< Irregular: first indices of the blocks of each dimension, from 0, one after the other. */
  const int64_t* grid; /**< Block-cyclic: the grid of processes; NULL: a nearly square one. */
} oc_ga_options;

/** @brief Creates an array of zeros. Collective.
 *
 *  Arrays are row-major: the last index varies fastest. A box has the elements from `begin` up to, but
 * without, `end`. In the memory of the caller, element (i0, i1, ...) of a box lies at the sum of
 * stride_bytes[k] * i_k, so strides may transpose; NULL: contiguous, row-major.
 *
 *  Calls that are not said to be collective are one-sided: from any thread, without help of other processes.
 * Between processes they are ordered by oc_ga_sync() and oc_world_barrier(). Accumulates of one element are
 * atomic; gets and puts of one at the same time are not.
 *  @param[in] rank,shape 1 to #OC_MAX_RANK dimensions.
 *  @param[out] array The handle, larger than 0.
 *  @return EINVAL (type, shape, options, or arguments that differ between processes), EBADF (world), ENOMEM
 * (more than the budget of a process). */
OUTCORE_API int oc_ga_create(int world, int type, int rank, const int64_t* shape,
                             const oc_ga_options* options, int* array);

/** @brief What an array is. Each place may be NULL; `shape` has room for `OC_MAX_RANK` numbers.
 *  @return EBADF. */
OUTCORE_API int oc_ga_inquire(int array, int* type, int* rank, int64_t* shape);

/** @brief The box of a process, empty if it holds nothing.
 *  @return EINVAL (no such process; block-cyclic, which has no single box), EBADF. */
OUTCORE_API int oc_ga_distribution(int array, int process, int64_t* begin, int64_t* end);

/** @brief The process that holds an element. EINVAL if it is outside. */
OUTCORE_API int oc_ga_owner(int array, const int64_t* index, int* process);

/** @brief The part of this process, in place, row-major; valid until oc_ga_close(). oc_ga_sync() orders
 * direct loads and stores with the transfers of others.
 *  @param[out] shape Shape of that memory; for block-cyclic as ScaLAPACK's local array. May be NULL.
 *  @param[out] stride_bytes May be NULL.
 *  @return EINVAL (`memory` is NULL), EBADF. */
OUTCORE_API int oc_ga_local(int array, void** memory, int64_t* shape, int64_t* stride_bytes);

/** @brief Copies a box into memory of the caller, which must not be the array's own. EINVAL (outside), EBADF.
 */
OUTCORE_API int oc_ga_get(int array, const int64_t* begin, const int64_t* end, void* memory,
                          const int64_t* stride_bytes);
/** @brief Copies memory of the caller into a box.
 *  @return EINVAL (outside, no memory), EBADF. */
OUTCORE_API int oc_ga_put(int array, const int64_t* begin, const int64_t* end, const void* memory,
                          const int64_t* stride_bytes);
/** @brief Adds alpha, one element of the array's type (NULL: one), times the memory to a box. Concurrent
 * accumulates add up. Types of 4 bytes and more, else EINVAL. */
OUTCORE_API int oc_ga_acc(int array, const int64_t* begin, const int64_t* end, const void* memory,
                          const int64_t* stride_bytes, const void* alpha);
/** @brief Begins what oc_ga_get() does; the memory is in use until oc_wait().
 *  @return As oc_ga_get(). */
OUTCORE_API int oc_ga_get_async(int array, const int64_t* begin, const int64_t* end, void* memory,
                                const int64_t* stride_bytes, int64_t* request);
/** @brief Begins what oc_ga_put() does; the memory may be used again after oc_wait(). */
OUTCORE_API int oc_ga_put_async(int array, const int64_t* begin, const int64_t* end, const void* memory,
                                const int64_t* stride_bytes, int64_t* request);
/** @brief Begins what oc_ga_acc() does. `alpha` is needed during the call only. */
OUTCORE_API int oc_ga_acc_async(int array, const int64_t* begin, const int64_t* end, const void* memory,
                                const int64_t* stride_bytes, const void* alpha, int64_t* request);

/** @brief Copies single elements into memory, contiguous, in their order.
 *  @param[in] indices The index of each, one after the other: count times rank numbers.
 *  @return EINVAL (outside, no memory), EBADF. */
OUTCORE_API int oc_ga_gather(int array, int64_t count, const int64_t* indices, void* memory);
/** @brief Copies memory into single elements. If one element occurs twice, either value may be the last.
 *  @return As oc_ga_gather(). */
OUTCORE_API int oc_ga_scatter(int array, int64_t count, const int64_t* indices, const void* memory);
/** @brief Adds alpha (NULL: one) times memory to single elements.
 *  @return As oc_ga_gather(); EINVAL also for types of less than 4 bytes. */
OUTCORE_API int oc_ga_scatter_acc(int array, int64_t count, const int64_t* indices, const void* memory,
                                  const void* alpha);

/** @brief Adds to an element of an array of #OC_INT64, atomically.
 *  @param[out] before The value before; may be NULL.
 *  @return EINVAL (outside, another type), EBADF. */
OUTCORE_API int oc_ga_read_increment(int array, const int64_t* index, int64_t value, int64_t* before);

/** @brief Sets all elements to one value, an element of the array's type; NULL: zero. Collective.
 *  @return EBADF. */
OUTCORE_API int oc_ga_fill(int array, const void* value);
/** @brief Copies all elements between arrays of one type and shape. Collective. EINVAL (type, shape). */
OUTCORE_API int oc_ga_copy(int from, int to);
/** @brief Sum of the products of elements, without conjugation, of two arrays of one type and shape:
 * #OC_INT64, #OC_FLOAT32, #OC_FLOAT64, #OC_COMPLEX64 or #OC_COMPLEX128. The same, bit by bit, at all
 * processes. Collective.
 *  @param[out] result One element of that type.
 *  @return EINVAL (type, shape, no place for the result), EBADF. */
OUTCORE_API int oc_ga_dot(int a, int b, void* result);
/** @brief c = alpha op(a) op(b) + beta c, for matrices of one type: #OC_FLOAT32, #OC_FLOAT64, #OC_COMPLEX64
 * or #OC_COMPLEX128. Each process computes the part of c that it holds, and gets blocks of a and b for it.
 * Collective.
 *
 *  It calls the BLAS of the program (dgemm_ and the like, of either size of INTEGER) if that is in a shared
 * library, else it uses its own loops. Memory: some 8 MB.
 *  @param[in] trans_a,trans_b 'N': the matrix as it is, 'T': transposed, 'C': with complex conjugation, too.
 *  @param[in] alpha,beta One element of that type; NULL: one, zero. With a beta of zero c is not read.
 *  @param[in] c Neither a nor b.
 *  @return EINVAL (type, rank, shape, letters, or arguments that differ between processes), EBADF. */
OUTCORE_API int oc_ga_gemm(int trans_a, int trans_b, const void* alpha, int a, int b, const void* beta,
                           int c);

/** @brief Completes the transfers of this process; afterwards all processes see every put that any process
 * made before. Collective.
 *  @return The error of a put that nobody waited for, at any process. */
OUTCORE_API int oc_ga_sync(int array);
/** @brief Waits for transfers under way, and frees the memory. Collective. Returns errors as oc_ga_sync();
 * the handle is closed even then.
 *  @return EBADF. */
OUTCORE_API int oc_ga_close(int array);

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_C_GA_H */
