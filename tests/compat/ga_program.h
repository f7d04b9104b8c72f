/* For the programs that test with the real Global Arrays: checks, start and end. */
#pragma once
#include <ga.h>
#include <macdecls.h>
#include <mpi.h>
#include <stdio.h>

static int failures = 0, me = 0, processes = 1;
static char directory[1024]; /* the argument of the program */

#define EXPECT(condition)                                                          \
  do {                                                                             \
    if (!(condition)) {                                                            \
      printf("FAIL  process %d: %s:%d: %s\n", me, __FILE__, __LINE__, #condition); \
      ++failures;                                                                  \
    }                                                                              \
  } while (0)

static void begin(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  GA_Initialize();
  MA_init(MT_C_DBL, 1000000, 4000000);
  me = GA_Nodeid();
  processes = GA_Nnodes();
  snprintf(directory, sizeof directory, "%s", count > 1 ? arguments[1] : ".");
}

/* Returns the exit status. */
static int end(void) {
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (me == 0) printf("%d failed\n", all);
  GA_Terminate();
  MPI_Finalize();
  return all != 0;
}
