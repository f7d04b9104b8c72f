/** @file sf.h
 *  @brief Shared files by their classic names, in liboutcore_pario. As Global Arrays 5.8 has them.
 *
 *  Functions return 0 or an errno value; SF_Errmsg() has its text. Creating and destroying is collective. */
#ifndef SF_H_
#define SF_H_
typedef double SFsize_t; /**< a whole number of bytes; as a hint, negative: not known */
#ifdef __cplusplus
extern "C" {
#endif
int SF_Create(char* fname, SFsize_t size_hard_limit, SFsize_t size_soft_limit, SFsize_t req_size,
              int* handle);
int SF_Create_suffix(char* fname, SFsize_t size_hard_limit, SFsize_t size_soft_limit, SFsize_t req_size,
                     int* handle, int suffix);
int SF_Destroy(int handle);
int SF_Rwtor(int handle);
int SF_Open(int handle);
int SF_Close(int handle);
int SF_Fsync(int handle);
int SF_Write(int handle, SFsize_t offset, SFsize_t bytes, char* buffer, int* req_id);
int SF_Read(int handle, SFsize_t offset, SFsize_t bytes, char* buffer, int* req_id);
int SF_Wait(int* req_id);
int SF_Waitall(int* list, int num);
/** `msg` has room for 80 characters. */
void SF_Errmsg(int code, char* msg);
#ifdef __cplusplus
}
#endif
#endif
