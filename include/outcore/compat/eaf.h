/** @file eaf.h
 *  @brief Exclusive access files by their classic names, in liboutcore_pario. As Global Arrays 5.8 has them.
 *
 *  Functions return 0 or a negative code; EAF_Errmsg() has its text. Offsets are whole numbers of bytes. */
#ifndef EAF_H
#define EAF_H
#define EAF_RW -1
#define EAF_W -2
#define EAF_R -3
#ifndef EAF_FORTRAN
/* As the original: programs rely on it. */
#include <stdio.h>
#include <sys/types.h>
#define EAF_OK 0
typedef double eaf_off_t;
#ifdef __cplusplus
extern "C" {
#endif
int EAF_Aread(int fd, eaf_off_t offset, void* buf, size_t bytes, int* req_id);
int EAF_Awrite(int fd, eaf_off_t offset, const void* buf, size_t bytes, int* req_id);
int EAF_Close(int fd);
int EAF_Delete(const char* fname);
/** 0 for the code of the end of the file, else not 0. */
int EAF_Eof(int code);
/** `msg` has room for 80 characters. */
void EAF_Errmsg(int code, char* msg);
int EAF_Length(int fd, eaf_off_t* length);
/** EAF_W empties the file; EAF_R opens one that exists, also without the right to write it. */
int EAF_Open(const char* fname, int type, int* fd);
void EAF_Print_stats(int fd);
/** *status: 0 done, 1 not yet. It must still be waited for. */
int EAF_Probe(int id, int* status);
int EAF_Read(int fd, eaf_off_t offset, void* buf, size_t bytes);
/** Free space in MiB, of the file system of a file or directory, and its type: "UFS". */
int EAF_Stat(const char* path, long* avail_mb, char* fstype, int fslen);
int EAF_Truncate(int fd, eaf_off_t length);
int EAF_Wait(int fd, int id);
int EAF_Write(int fd, eaf_off_t offset, const void* buf, size_t bytes);
#ifdef __cplusplus
}
#endif
#endif
#endif
