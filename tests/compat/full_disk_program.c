/* Shared files of several processes on a full disk: each learns the result of its own write, and none waits
 * for ever. The argument is a directory on a disk of 2 MiB. */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outcore/compat/sf.h"
#include "support/c_check.h"

extern const char* oc_pario_last_error(void);

enum { small = 4096, large = 4 << 20 };
static char path[1024], first[small], found[small];

static void create(int* file) {
  EXPECT(SF_Create(path, -1, -1, -1, file) == 0);
}

/* All processes can read what process 0 has written. */
static void small_write(int file, int me) {
  int id = -1;
  if (me == 0) EXPECT(SF_Write(file, 0, small, first, &id) == 0 && SF_Wait(&id) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  memset(found, 0, small);
  EXPECT(SF_Read(file, 0, small, found, &id) == 0 && SF_Wait(&id) == 0 && memcmp(found, first, small) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void large_write(int file, double offset, char* data) {
  char text[80], wanted[200];
  int id = -1, code = SF_Write(file, offset, large, data, &id);
  if (code == 0) code = SF_Wait(&id);
  EXPECT(code == ENOSPC);
  snprintf(wanted, sizeof wanted, "SF: write of %d bytes at offset %.0f of sf: No space left on device",
           large, offset);
  EXPECT(strstr(oc_pario_last_error(), wanted) == oc_pario_last_error());
  SF_Errmsg(code, text);
  EXPECT(strstr(text, wanted) == text); /* in the 79 characters that there are */
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int count, char** arguments) {
  int me = 0, all = 0, file = -1;
  char* data = calloc(1, large);
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  snprintf(path, sizeof path, "%s/sf", arguments[1]);
  memset(first, 7, small);
  create(&file);
  small_write(file, me);
  large_write(file, small + (double)me * large, data);
  small_write(file, me);
  EXPECT(SF_Destroy(file) == 0);
  create(&file); /* there is room again */
  small_write(file, me);
  EXPECT(SF_Destroy(file) == 0);
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (me == 0) printf("%d failed\n", all);
  MPI_Finalize();
  free(data);
  return all != 0;
}
