/** @file checkpoint.h
 *  @brief Checkpoints: named arrays and a text about them, saved atomically, all or nothing. Part of
 * outcore/outcore.h. */
#ifndef OUTCORE_C_CHECKPOINT_H
#define OUTCORE_C_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "outcore/api.h"
#include "outcore/c/element_type.h"
#include "outcore/c/file_hints.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup kept What an array of a checkpoint was saved from
 *  @{ */
#define OC_KEPT_GLOBAL 0 /**< A global array. */
#define OC_KEPT_DISK 1   /**< A disk array. */
#define OC_KEPT_VALUES 2 /**< Memory that is the same at all processes. */
/** @} */

/** Options of saving. Zeros beside `size`, or a NULL pointer, mean the defaults. */
typedef struct oc_checkpoint_options {
  size_t size;       /**< sizeof of this structure. */
  const char* codec; /**< As in oc_dra_options; disk arrays keep theirs. */
  int placement;     /**< One of OC_PLACEMENT_*. */
} oc_checkpoint_options;

/** @brief Begins to save arrays under `path`, a directory, in place of the checkpoint that is there.
 *
 *      oc_checkpoint_begin(world, "ccsd.checkpoint", NULL, &saving);
 *      oc_checkpoint_add_ga(saving, "t2", t2);
 *      oc_checkpoint_add_values(saving, "energy", OC_FLOAT64, 0, NULL, &energy);
 *      code = oc_checkpoint_commit(saving, "12");
 *
 *  Nothing but oc_checkpoint_commit() is collective, or touches the disk. If a call before it returns an
 * error at one process, oc_checkpoint_commit() returns that error at all processes.
 *  @param[out] saving The handle, larger than 0; valid until oc_checkpoint_commit() or
 * oc_checkpoint_abandon(). If path or options are refused, it is still set, so that the process can call the
 * commit.
 *  @return EINVAL, EBADF (world). */
OUTCORE_API int oc_checkpoint_begin(int world, const char* path, const oc_checkpoint_options* options,
                                    int* saving);
/** @brief Adds a global array, which must not change until the commit.
 *  @param[in] name Letters, digits and _ . + -, at most 100, which no other array of the checkpoint has.
 *  @return EINVAL (name), EBADF. */
OUTCORE_API int oc_checkpoint_add_ga(int saving, const char* name, int ga);
/** @brief Adds a disk array.
 *  @return As oc_checkpoint_add_ga(). */
OUTCORE_API int oc_checkpoint_add_dra(int saving, const char* name, int dra);
/** @brief Adds memory, contiguous and row-major, that is the same at all processes and stays until the
 * commit.
 *  @param[in] rank,shape 0 (one element) to #OC_MAX_RANK dimensions.
 *  @return EINVAL (name, type, shape, no memory), EBADF. */
OUTCORE_API int oc_checkpoint_add_values(int saving, const char* name, int type, int rank,
                                         const int64_t* shape, const void* values);
/** @brief Saves all added arrays; on return they are on stable storage. Collective. The handle ends in any
 * case.
 *
 *  If it fails, or the job is killed, the previous checkpoint stays, untouched.
 *  @param[in] metadata A text, UTF-8, such as the number of an iteration; NULL: "".
 *  @return ENOSPC, EIO, ENOENT (the directory that it lies in), EEXIST (a disk array has the path), EBUSY
 * (another job saves there), EINVAL (processes added different arrays): the same at all processes. */
OUTCORE_API int oc_checkpoint_commit(int saving, const char* metadata);
/** @brief Ends the handle; nothing is saved. Not collective.
 *  @return EBADF. */
OUTCORE_API int oc_checkpoint_abandon(int saving);

/** @brief Opens a checkpoint that any number of processes have saved, also in Python. Collective. It stays
 * readable until oc_checkpoint_close(), whatever another job saves meanwhile.
 *  @param[out] checkpoint The handle, larger than 0.
 *  @return ENOENT (there is none), EINVAL (the path is something else), ENOTSUP (of another version), EIO
 * (damaged). */
OUTCORE_API int oc_checkpoint_open(int world, const char* path, int* checkpoint);
/** @brief The text that was passed to oc_checkpoint_commit(), cut to `size` with the final 0. Metadata of
 * Python that are no text: as JSON.
 *  @param[out] bytes Its length, without the final 0; may be NULL.
 *  @return EBADF. */
OUTCORE_API int oc_checkpoint_metadata(int checkpoint, char* text, size_t size, int64_t* bytes);
/** @brief How many arrays a checkpoint has.
 *  @return EBADF, EINVAL (`count` is NULL). */
OUTCORE_API int oc_checkpoint_count(int checkpoint, int* count);
/** @brief Name of an array, by its number from 0, in the order in which they were added; cut to `size`.
 *  @return EINVAL (no such number), EBADF. */
OUTCORE_API int oc_checkpoint_name(int checkpoint, int number, char* name, size_t size);
/** @brief What an array is; nothing is read. Each place may be NULL.
 *  @param[out] kind One of OC_KEPT_*.
 *  @param[out] shape Room for `OC_MAX_RANK` numbers.
 *  @return ENOENT (no array of that name), EBADF. */
OUTCORE_API int oc_checkpoint_inquire(int checkpoint, const char* name, int* kind, int* type, int* rank,
                                      int64_t* shape);
/** @brief Reads an array into a global array of its type and shape. Collective.
 *  @return ENOENT (no such array), EINVAL (another type or shape), EIO. */
OUTCORE_API int oc_checkpoint_read_ga(int checkpoint, const char* name, int ga);
/** @brief Reads all of an array into memory of each process, contiguous and row-major. Collective.
 *  @param[in] bytes Size of the memory: EINVAL if it is not that of the array.
 *  @return ENOENT (no such array), EBADF, EIO, ENOMEM. */
OUTCORE_API int oc_checkpoint_read_values(int checkpoint, const char* name, void* values, int64_t bytes);
/** @brief Opens an array to read from it in place: oc_dra_close() it before the checkpoint is saved again.
 * Collective.
 *  @param[out] array A handle for calls named oc_dra_*.
 *  @return ENOENT (no such array), EINVAL (`array` is NULL), EBADF, EIO. */
OUTCORE_API int oc_checkpoint_open_dra(int checkpoint, const char* name, int* array);
/** @brief Ends the handle; a later commit may remove the files. Not collective.
 *  @return EBADF. */
OUTCORE_API int oc_checkpoint_close(int checkpoint);

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_C_CHECKPOINT_H */
