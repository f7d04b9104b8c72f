/** @file einsum.h
 *  @brief Contractions of arrays in memory, in global arrays and on disk. Part of outcore/outcore.h. */
#ifndef OUTCORE_C_EINSUM_H
#define OUTCORE_C_EINSUM_H

#include <stddef.h>
#include <stdint.h>

#include "outcore/api.h"
#include "outcore/c/element_type.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup operands Where an operand of a contraction lies
 *  @{ */
#define OC_OPERAND_MEMORY 0 /**< Memory of the caller. */
#define OC_OPERAND_GLOBAL 1 /**< A global array. */
#define OC_OPERAND_DISK 2   /**< A disk array. */
/** @} */

/** An array of a contraction. For arrays of the library the handle is enough: the other fields describe
 * memory.
 */
typedef struct oc_operand {
  int kind;  /**< One of OC_OPERAND_*. */
  int array; /**< The handle of a global array or disk array. */
  int type;  /**< Of elements in memory. */
  int rank;  /**< 0 to #OC_MAX_RANK; 0 is a number. */
  const int64_t* shape;
  const int64_t* stride_bytes; /**< NULL: contiguous, row-major. */
  void* memory; /**< At each process: all elements of an operand, the same, or room for all of a result. */
} oc_operand;

/** Options of a contraction. Zeros beside `size`, or a NULL pointer, mean the defaults. */
typedef struct oc_einsum_options {
  size_t size;          /**< sizeof of this structure. */
  int64_t memory_bytes; /**< Of each process, for panels and intermediate arrays; 0: three quarters of what is
                           left of the budget. */
  const char* plan;     /**< A text of oc_einsum_plan() or of Python's Plan.text(); NULL: a simple plan. */
  const void* scale;    /**< Factor of the product, one element; NULL: one. */
  int accumulate;       /**< Not 0: add to the elements of the result. */
  int threads;          /**< Of each process, 1 to 256; 0: one. */
} oc_einsum_options;

/** Traffic and operations of a contraction, summed over all processes. */
typedef struct oc_einsum_counts {
  size_t size; /**< sizeof of this structure. */
  int64_t disk_read_bytes, disk_written_bytes;
  int64_t network_bytes; /**< From and to global arrays. */
  int64_t copied_bytes;  /**< From and to memory of the process. */
  double flops;          /**< Two for each multiplication. */
} oc_einsum_counts;

/** @brief result = scale times the sum of products of operands, as numpy.einsum defines it: "ik,kj->ij"
 * multiplies matrices. Collective: all processes call with the same arguments, except addresses.
 *
 *  Panels of the arrays are read ahead of their use. Threads multiply them by the BLAS of the program (dgemm_
 * and the like, of either size of INTEGER, if that is in a shared library; set it to one thread) or by loops.
 * Results are written to where the result lies. A plan defines the panels and their order. The simple plan
 * multiplies from left to right and halves panels until they fit; Python's planner searches for the least
 * time, and this function accepts the text of its plan.
 *
 *  Puts of other processes into operands must be complete before the call: oc_ga_sync(), oc_dra_sync(). All
 * processes see the result when this returns. Elements of all arrays have one type: #OC_FLOAT32, #OC_FLOAT64,
 * #OC_COMPLEX64 or #OC_COMPLEX128. Memory: `memory_bytes`, accounted to the budget. With several processes, a
 * result in memory needs its size once more, divided among them.
 *  @param[in] subscripts A letter for each axis, blanks anywhere; no letter twice in one operand. Without
 * "->" the result has the letters that occur once, in alphabetical order.
 *  @param[in] count,operands 1 or more.
 *  @param[in] result Must share no elements with an operand.
 *  @param[out] counts May be NULL.
 *  @return EINVAL (subscripts, shapes, types, a plan that is damaged or made for other arrays, arguments that
 * differ between processes; the text says which), ENOTSUP (a plan of another format), EBADF (handles), EROFS
 * (a result that is open to read only), ENOMEM (the text says how much memory is enough), ENOSPC, and the
 * errors of moving elements.
 */
OUTCORE_API int oc_einsum(int world, const char* subscripts, int count, const oc_operand* operands,
                          const oc_operand* result, const oc_einsum_options* options,
                          oc_einsum_counts* counts);

/** @brief The plan that oc_einsum() would carry out, as text, cut to `size` with its final 0. Nothing is
 * moved. Collective.
 *  @param[out] bytes Its length, without the final 0; may be NULL.
 *  @return As oc_einsum(). */
OUTCORE_API int oc_einsum_plan(int world, const char* subscripts, int count, const oc_operand* operands,
                               const oc_operand* result, const oc_einsum_options* options, char* text,
                               size_t size, int64_t* bytes);

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_C_EINSUM_H */
