/** @file dra.h
 *  @brief Disk resident arrays by their classic names, in liboutcore_pario. As Global Arrays 5.8 has them.
 *
 *  Functions return 0 or an errno value, whose text is that of oc_pario_last_error(). All are collective but
 *  DRA_Inquire and DRA_Probe. */
#ifndef OUTCORE_COMPAT_DRA_H
#define OUTCORE_COMPAT_DRA_H
#include "outcore/compat/chemio.h"
typedef long dra_size_t;
#define DRA_RW ELIO_RW
#define DRA_R ELIO_R
#define DRA_W ELIO_W
#define DRA_REQ_INVALID -333
#ifdef __cplusplus
extern "C" {
#endif
int NDRA_Create(int type, int ndim, dra_size_t dims[], char* name, char* filename, int mode,
                dra_size_t reqdims[], int* d_a);
int NDRA_Create_config(int type, int ndim, dra_size_t dims[], char* name, char* filename, int mode,
                       dra_size_t reqdims[], int numfiles, int ioprocs, int* d_a);
/** `name` has room for 72 characters, `filename` for 248, as in the original; longer ones are cut. */
int NDRA_Inquire(int d_a, int* type, int* ndim, dra_size_t dims[], char* name, char* filename);
int NDRA_Write(int g_a, int d_a, int* request);
int NDRA_Read(int g_a, int d_a, int* request);
int NDRA_Write_section(long transp, int g_a, int glo[], int ghi[], int d_a, dra_size_t dlo[],
                       dra_size_t dhi[], int* request);
int NDRA_Read_section(long transp, int g_a, int glo[], int ghi[], int d_a, dra_size_t dlo[], dra_size_t dhi[],
                      int* request);
int DRA_Init(int max_arrays, double max_array_size, double total_disk_space, double max_memory);
int DRA_Terminate(void);
int DRA_Open(char* filename, int mode, int* d_a);
/** *compl_status: 0 done, 1 not yet. It must still be waited for. */
int DRA_Probe(int request, int* compl_status);
/** Not 0: errors are printed. */
void DRA_Set_debug(long flag);
void DRA_Print_internals(int d_a);
void DRA_Set_default_config(int numfiles, int numioprocs);
/** All processes call it, also with DRA_REQ_INVALID. */
int DRA_Wait(int request);
int DRA_Delete(int d_a);
int DRA_Close(int d_a);
void DRA_Flick(void);
/** The text of the last failure of a function of liboutcore_pario in this thread; not part of the original.
 * */
const char* oc_pario_last_error(void);
#ifdef __cplusplus
}
#endif
#endif
