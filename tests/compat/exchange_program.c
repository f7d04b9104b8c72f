/* Writes, or reads and checks, a disk array whose elements are 0, 1, 2, .. in the order of C:
 *
 *     exchange_program write|read NAME FILES TYPE DIMENSION..
 *
 * Prints the codes of calls that failed.
 */
#include <ga.h>
#include <macdecls.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dra.h"

enum { max_axes = 7 };

static double value(int type, const void* memory, int i) {
  switch (type) {
    case C_INT:
      return ((const int*)memory)[i];
    case C_LONG:
      return (double)((const long*)memory)[i];
    case C_FLOAT:
      return ((const float*)memory)[i];
    case C_DCPL:
      return ((const double*)memory)[2 * i] + ((const double*)memory)[2 * i + 1];
    default:
      return ((const double*)memory)[i];
  }
}

static void set(int type, void* memory, int i) {
  switch (type) {
    case C_INT:
      ((int*)memory)[i] = i;
      break;
    case C_LONG:
      ((long*)memory)[i] = i;
      break;
    case C_FLOAT:
      ((float*)memory)[i] = (float)i;
      break;
    case C_DCPL:
      ((double*)memory)[2 * i] = i;
      ((double*)memory)[2 * i + 1] = 0;
      break;
    default:
      ((double*)memory)[i] = i;
  }
}

static void call(const char* name, int code) {
  if (code != 0 && GA_Nodeid() == 0) printf("%s: %d\n", name, code);
}

int main(int count, char** arguments) {
  int axes = count - 5, type = 0, files = 1, total = 1, wrong = 0, g_a, d_a = 0, request = 0, i;
  int dims[max_axes], lo[max_axes] = {0}, hi[max_axes], ld[max_axes] = {0};
  dra_size_t its_dims[max_axes], typical[max_axes];
  char name[] = "exchanged", *memory;
  MPI_Init(&count, &arguments);
  GA_Initialize();
  MA_init(MT_C_DBL, 1000000, 4000000);
  files = atoi(arguments[3]);
  type = atoi(arguments[4]);
  for (i = 0; i < axes; ++i) {
    dims[i] = atoi(arguments[5 + i]);
    its_dims[i] = dims[i];
    typical[i] = dims[i] > 6 ? 6 + i : dims[i];
    hi[i] = dims[i] - 1;
    total *= dims[i];
    if (i > 0) ld[i - 1] = dims[i];
  }
  memory = calloc((size_t)total, 16);
  g_a = NGA_Create(type, axes, dims, name, NULL);
  GA_Zero(g_a);
  DRA_Init(4, 1e9, 1e10, -1);
  if (strcmp(arguments[1], "write") == 0) {
    for (i = 0; i < total; ++i) set(type, memory, i);
    if (GA_Nodeid() == 0) NGA_Put(g_a, lo, hi, memory, ld);
    GA_Sync();
    call("create",
         NDRA_Create_config(type, axes, its_dims, name, arguments[2], DRA_RW, typical, files, files, &d_a));
    call("write", NDRA_Write(g_a, d_a, &request));
    call("wait", DRA_Wait(request));
  } else {
    call("open", DRA_Open(arguments[2], DRA_R, &d_a));
    call("read", NDRA_Read(g_a, d_a, &request));
    call("wait", DRA_Wait(request));
    NGA_Get(g_a, lo, hi, memory, ld);
    for (i = 0; i < total; ++i) wrong += value(type, memory, i) != i;
    GA_Sync();
  }
  call("close", DRA_Close(d_a));
  DRA_Terminate();
  if (GA_Nodeid() == 0) printf("%d wrong\n", wrong);
  free(memory);
  GA_Terminate();
  MPI_Finalize();
  return wrong != 0;
}
