/* What the programs of bench dra have in common: they take commands from the standard input of rank 0. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "_clock.h"
#include "_commands.h"

static int section;
static long array_side;
static const char *directory, *source_file;

/* Neither library has a call for it. */
static void sync_files(void) {
  int fd;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    fd = open(directory, O_RDONLY);
    syncfs(fd);
    close(fd);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Whether rank 0 has the slice of a column (along_rows) or row of the array whose quarters are the section.
 */
static int is_slice(const double* values, int along_rows, long index, int length) {
  FILE* file = fopen(source_file, "rb");
  int good = file != NULL, i;
  double expected;
  for (i = 0; i < length && good; ++i) {
    long row = along_rows ? i : index, column = along_rows ? index : i;
    fseek(file, 8 * ((row % section) * section + column % section), SEEK_SET);
    good = fread(&expected, 8, 1, file) == 1 && expected == values[i];
  }
  if (file) fclose(file);
  return good;
}
