/** @file elio.h
 *  @brief Elementary I/O by its classic names, in liboutcore_pario. As Global Arrays 5.8 has them.
 *
 *  Functions return 0, or a number of bytes, or a negative code; elio_errmsg() has its text. */
#ifndef OUTCORE_COMPAT_ELIO_H
#define OUTCORE_COMPAT_ELIO_H
#include "outcore/compat/chemio.h"
/* As the original: programs rely on it. */
#include <stdio.h>
#include <sys/types.h>
#define ELIO_UFS 0
#define ELIO_PFS 1
#define ELIO_PIOFS 2
#define ELIO_PENDING_ERR -44
#define ELIO_SHARED 77
#define ELIO_PRIVATE 88
#ifdef __cplusplus
extern "C" {
#endif
typedef long Size_t;
typedef double Off_t; /**< a whole number of bytes */
typedef struct outcore_elio_file {
  int fd;   /**< of the system */
  int fs;   /**< ELIO_UFS */
  int mode; /**< ELIO_SHARED or ELIO_PRIVATE */
  int type; /**< ELIO_R, ELIO_W or ELIO_RW */
  char* name;
  int extent;                     /**< 0: files have any size */
  struct outcore_elio_file* next; /**< NULL */
} fd_struct;
typedef fd_struct* Fd_t;
typedef unsigned long avail_t;
typedef struct {
  int fs;
  avail_t avail; /**< in KiB */
} stat_t;
typedef long io_request_t;
/** Returns the number of bytes; if the file ends before, a negative code (but reads those before the end). */
Size_t elio_read(Fd_t fd, Off_t offset, void* buf, Size_t bytes);
int elio_aread(Fd_t fd, Off_t offset, void* buf, Size_t bytes, io_request_t* req_id);
Size_t elio_write(Fd_t fd, Off_t offset, const void* buf, Size_t bytes);
int elio_awrite(Fd_t fd, Off_t offset, const void* buf, Size_t bytes, io_request_t* req_id);
/** *id becomes ELIO_DONE. */
int elio_wait(io_request_t* id);
/** *status: ELIO_DONE or ELIO_PENDING. */
int elio_probe(io_request_t* id, int* status);
int elio_delete(const char* filename);
/** NULL if it cannot be opened. */
Fd_t elio_open(const char* fname, int type, int mode);
int elio_close(Fd_t fd);
int elio_stat(char* fname, stat_t* statinfo);
int elio_dirname(const char* fname, char* statinfo, int len);
int elio_truncate(Fd_t fd, Off_t length);
int elio_length(Fd_t fd, Off_t* length);
/** `msg` has room for 80 characters. */
void elio_errmsg(int code, char* msg);
int elio_fsync(Fd_t fd);
#ifdef __cplusplus
}
#endif
#endif
