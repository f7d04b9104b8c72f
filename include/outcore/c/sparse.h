/** @file sparse.h
 *  @brief Block-sparse arrays on disk: only the nonzero tiles of an array are stored. Part of
 * outcore/outcore.h. */
#ifndef OUTCORE_C_SPARSE_H
#define OUTCORE_C_SPARSE_H

#include <stddef.h>
#include <stdint.h>

#include "outcore/api.h"
#include "outcore/c/dra.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @brief Creates a block-sparse array of zeros. Collective.
 *  @param[in] rank,tiles Number of tiles along each axis.
 *  @param[in] boundaries For each axis an increasing list from 0 to its extent, tiles[k] + 1 numbers; one
 * axis after the other.
 *  @param[in] nonzero For each tile, in row-major order: not 0 if it is stored.
 *  @param[in] options As for oc_dra_create(); `chunk` is one number of elements, `typical` is not used.
 *  @param[out] array The handle, larger than 0; only for calls named oc_sparse_*.
 *  @return As oc_dra_create(). */
OUTCORE_API int oc_sparse_create(int world, int type, int rank, const int64_t* tiles,
                                 const int64_t* boundaries, const unsigned char* nonzero,
                                 const oc_dra_options* options, int* array);
/** @brief Opens a persistent block-sparse array. Collective. As oc_dra_open(); EINVAL for an array that is
 * not block-sparse.
 */
OUTCORE_API int oc_sparse_open(int world, const char* path, int writable, int* array);
/** @brief What an array is. Each place may be NULL; lists have room for `OC_MAX_RANK` numbers.
 *  @param[out] tiles Number of tiles along each axis.
 *  @param[out] count Number of nonzero tiles.
 *  @return EBADF. */
OUTCORE_API int oc_sparse_inquire(int array, int* type, int* rank, int64_t* shape, int64_t* tiles,
                                  int64_t* count);
/** @brief The box of a tile, and the process that owns it: -1 for a zero tile. Each place may be NULL.
 *  @return EINVAL (no such tile), EBADF. */
OUTCORE_API int oc_sparse_tile(int array, const int64_t* tile, int64_t* begin, int64_t* end, int* owner);

/** @brief Reads all elements of a tile, contiguous and row-major. A zero tile gives zeros.
 *  @param[in] bytes Size of the memory: EINVAL if it is not that of the tile.
 *  @return EINVAL (also for no such tile), EBADF, EIO, ENOMEM. */
OUTCORE_API int oc_sparse_get(int array, const int64_t* tile, void* memory, int64_t bytes);
/** @brief Writes a tile. EINVAL for a zero tile.
 *  @return EINVAL (also for no such tile, another size), EBADF, EROFS, ENOSPC, EIO, ENOMEM. */
OUTCORE_API int oc_sparse_put(int array, const int64_t* tile, const void* memory, int64_t bytes);
/** @brief Adds alpha (NULL: one) times the memory to a tile. Concurrent accumulates add up.
 *  @return As oc_sparse_put(); EINVAL also for types of less than 4 bytes. */
OUTCORE_API int oc_sparse_acc(int array, const int64_t* tile, const void* memory, int64_t bytes,
                              const void* alpha);
/** @brief Begins what oc_sparse_get() does. */
OUTCORE_API int oc_sparse_get_async(int array, const int64_t* tile, void* memory, int64_t bytes,
                                    int64_t* request);
/** @brief Begins what oc_sparse_put() does. */
OUTCORE_API int oc_sparse_put_async(int array, const int64_t* tile, const void* memory, int64_t bytes,
                                    int64_t* request);
/** @brief Begins what oc_sparse_acc() does. */
OUTCORE_API int oc_sparse_acc_async(int array, const int64_t* tile, const void* memory, int64_t bytes,
                                    const void* alpha, int64_t* request);
/** @brief Hints that a tile will be read soon.
 *  @return EINVAL (no such tile), EBADF. */
OUTCORE_API int oc_sparse_prefetch(int array, const int64_t* tile);

/** @brief As oc_dra_sync(). */
OUTCORE_API int oc_sparse_sync(int array);
/** @brief As oc_dra_flush(). Collective. */
OUTCORE_API int oc_sparse_flush(int array, const char* metadata);
/** @brief As oc_dra_metadata(). */
OUTCORE_API int oc_sparse_metadata(int array, char* text, size_t size, int64_t* bytes);
/** @brief As oc_dra_close(). Collective. */
OUTCORE_API int oc_sparse_close(int array);
/** @brief As oc_dra_delete(). Collective. */
OUTCORE_API int oc_sparse_delete(int array);

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_C_SPARSE_H */
