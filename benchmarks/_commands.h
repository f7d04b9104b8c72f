/* Commands of programs that measure: rank 0 reads them from its standard input. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int rank;

/* The next command of rank 0, to all; those that wait sleep `pause_us` between their looks. */
static void next(char* line, int size, useconds_t pause_us) {
  MPI_Request request;
  int done = 0;
  if (rank == 0 && !fgets(line, size, stdin)) strcpy(line, "quit");
  MPI_Ibcast(line, size, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
  for (;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return;
    usleep(pause_us);
  }
}
