/** @file outcore.h
 *  @brief The C interface of Outcore: worlds, global arrays (GA), disk arrays (DRA), block-sparse arrays,
 * exclusive access files (EAF), shared files (SF), record files (RF), checkpoints, contractions and procedure
 * calls. Each has a header in outcore/c.
 *
 *  An exclusive access file is a byte-addressable scratch file of one process: integrals, intermediates,
 *  vectors. Two processes that open "ints" have two files. A file vanishes with its process, also when that
 *  is killed, unless it was opened to be kept.
 *
 *  A shared file is a byte-addressable scratch file of all processes of a world: created and closed by all
 *  together, read and written by any of them at any time. Bytes that nobody has written are zeros.
 *
 *  A record file keeps numbered records in a shared file. Each record has any size, and may have another size
 * when it is rewritten. Example: blocks of compressed vectors.
 *
 *  Source: the Exclusive Access Files and Shared Files of the ChemIO project (Nieplocha, Foster, Kendall,
 * "ChemIO: high-performance parallel I/O for computational chemistry applications", IJHPCA 12, 1998).
 *
 *  @section example Example
 *
 *      int file, code;
 *      int64_t request;
 *      if ((code = oc_eaf_open("ints", NULL, &file))) { fputs(oc_strerror(code), stderr); return 1; }
 *      oc_eaf_write(file, 0, values, bytes);
 *      oc_eaf_read_async(file, 0, other, bytes, &request);
 *      compute();
 *      oc_wait(request, NULL);
 *      oc_eaf_close(file);
 *
 *  The same for all processes of an MPI job:
 *
 *      oc_world_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), NULL, &world);
 *      oc_sf_create(world, "amplitudes", NULL, &file);
 *      oc_sf_write(file, rank * bytes, mine, bytes);
 *      oc_world_barrier(world);
 *      oc_sf_read(file, other * bytes, theirs, bytes);
 *      oc_sf_close(file);
 *      oc_world_close(world);
 *
 *  @section units Units
 *
 *  Offsets, sizes and lengths of files are in bytes, those of arrays in elements, strides of memory in bytes.
 * All have 64 bits and count from 0. Nothing needs to be aligned.
 *
 *  @section options Options
 *
 *  Each structure of options begins with `size`, which the caller sets to sizeof of the structure:
 *
 *      oc_eaf_options options = {.size = sizeof options, .keep = 1};
 *
 *  So a program works with a library whose structure has more fields, which keep their defaults. EINVAL:
 * `size` is not set, or fields are set that the library does not know.
 *
 *  @section errors Errors
 *
 *  Every function returns #OC_OK (0), #OC_END_OF_FILE, or a positive errno value. The full text of the last
 *  failure in the calling thread (what, where, how much) is oc_strerror() of the code returned, or
 * oc_last_error(). The library never ends the process, and no C++ exception leaves it.
 *
 *  The comment of each function lists what it returns. In addition, every function that takes a handle
 * returns EBADF if the handle was never issued, is closed, or belongs to the process that this one was forked
 * from. Every function may return ENOMEM, and EINVAL for a pointer that is NULL where NULL is not allowed.
 *
 *  If a collective function has an error at one process, it returns an error at all processes. An invalid
 * handle is an exception: it is an error only at the process that passes it.
 *
 *  A write may be kept in memory and carried out later. If that fails, the next write, flush or close of the
 *  file returns the error.
 *
 *  @section threads Thread rules
 *
 *  - Different files may be used by different threads at any time.
 *  - One file: any calls of different threads are safe with one another, as those of pread(2) and pwrite(2)
 * are. If requests overlap and one of them is a write, their order is undefined.
 *  - Any thread may wait for a request, but only one.
 *  - oc_eaf_close() and oc_eaf_delete() must come last; a call of another thread on that handle returns EBADF
 *    when it comes later.
 *
 *  @section caveats Caveats
 *
 *  - The buffer of a nonblocking request belongs to the library until the request has been waited for. Before
 * that, do not free it, and do not write to it (a write) or use it (a read). In Fortran, give it the
 * ASYNCHRONOUS and TARGET attributes.
 *  - Each request must be waited for, also when oc_test() says that it is complete. Their number is
 *    limited by memory alone.
 *  - Handles are numbers that are never used twice, so the library recognises a closed handle.
 *  - A child made by fork(2) shares nothing: it must open its own files.
 */
#ifndef OUTCORE_H
#define OUTCORE_H

/* IWYU pragma: begin_exports */
#include "outcore/c/call.h"
#include "outcore/c/checkpoint.h"
#include "outcore/c/dra.h"
#include "outcore/c/eaf.h"
#include "outcore/c/einsum.h"
#include "outcore/c/element_type.h"
#include "outcore/c/error.h"
#include "outcore/c/file_hints.h"
#include "outcore/c/ga.h"
#include "outcore/c/request.h"
#include "outcore/c/rf.h"
#include "outcore/c/sf.h"
#include "outcore/c/sparse.h"
#include "outcore/c/version.h"
#include "outcore/c/world.h"
/* IWYU pragma: end_exports */

#endif /* OUTCORE_H */
