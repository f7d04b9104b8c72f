/** @file call.h
 *  @brief Procedure calls: a process calls a registered procedure at another process, which need not poll.
 * Part of outcore/outcore.h. */
#ifndef OUTCORE_C_CALL_H
#define OUTCORE_C_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "outcore/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A call as its target sees it, while the procedure runs. */
typedef struct oc_call_arguments {
  size_t size;        /**< Of this structure, as the library has it. */
  int caller;         /**< The process that calls. */
  const void* header; /**< A copy of the caller's header. */
  int64_t header_bytes;
  const void* payload; /**< The caller's data. */
  int64_t payload_bytes;
  void* reply; /**< Where the procedure writes its reply: room for `max_reply_bytes`. */
  int64_t max_reply_bytes;
  int64_t reply_bytes; /**< Length of the reply, set by the procedure; 0 at first. */
} oc_call_arguments;

/** A procedure. A thread of the library runs it. It returns #OC_OK, or an errno value that the caller's
 * oc_wait() returns. */
typedef int (*oc_procedure)(void* context, oc_call_arguments* call);

/** @brief Registers a procedure under the same number at all processes, each with its own function.
 * Collective.
 *  @param[in] may_block Not 0: the procedure may block, for I/O, and several calls run at once. 0: one call
 * runs at a time; the procedure must take no longer than some ten microseconds and must not wait for anything
 * of the library.
 *  @param[out] procedure Its number.
 *  @return EEXIST (a name that is taken), EINVAL, EBADF. */
OUTCORE_API int oc_call_register(int world, const char* name, oc_procedure function, void* context,
                                 int may_block, int64_t* procedure);
/** @brief Ends a procedure: waits for calls that are being served here; later calls fail with ENOENT.
 * Collective. */
OUTCORE_API int oc_call_unregister(int world, int64_t procedure);
/** @brief The number of a procedure. ENOENT for a name that was not registered. */
OUTCORE_API int oc_call_find(int world, const char* name, int64_t* procedure);
/** @brief Calls a procedure at a process, which may be this one, and returns at once. oc_wait() gives the
 * length of the reply. Any thread.
 *  @param[in] header At most 3072 bytes, copied.
 *  @param[in] payload Must stay, as `reply` must, until oc_wait(). At most 1 GiB.
 *  @return EINVAL, EMSGSIZE (a header or payload that is too long), EBADF; from oc_wait(): what the procedure
 * returned, ENOENT, EMSGSIZE (no room for the reply). */
OUTCORE_API int oc_call_async(int world, int process, int64_t procedure, const void* header,
                              int64_t header_bytes, const void* payload, int64_t payload_bytes, void* reply,
                              int64_t max_reply_bytes, int64_t* request);

#ifdef __cplusplus
}
#endif
#endif /* OUTCORE_C_CALL_H */
