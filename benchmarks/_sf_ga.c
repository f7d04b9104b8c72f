/* The shared files of Global Arrays for bench sf: takes the commands of _sf_worker.cpp (see there) from the
 * standard input of rank 0 and answers in the same way. Argument: directory. */
#define _GNU_SOURCE
#include <ga.h>
#include <macdecls.h>
#include <mpi.h>
#include <sf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "_clock.h"
#include "_commands.h"

static int processes, file;
static char path[512];
static char* buffer;

static void check(int failed, const char* what) {
  if (failed) GA_Error((char*)what, failed);
}

/* Moves every request of this process; returns whether the data read were those of request k. */
static int move(int writes, long bytes, long count) {
  int64_t *first = (int64_t*)buffer, *last = (int64_t*)(buffer + bytes) - 1;
  long k = writes ? rank : (rank + 1) % processes;
  int good = 1, request;
  for (; k < count; k += processes) {
    if (writes) {
      *first = *last = k;
      check(SF_Write(file, (double)k * bytes, bytes, buffer, &request), "SF_Write");
    } else {
      check(SF_Read(file, (double)k * bytes, bytes, buffer, &request), "SF_Read");
    }
    check(SF_Wait(&request), "SF_Wait");
    if (!writes) good = good && *first == k && *last == k;
  }
  return good;
}

static void obey(char* line) {
  char command[16] = "";
  long bytes = 0, total = 0;
  double start, end;
  int good;
  if (sscanf(line, "%15s ga %ld %ld", command, &bytes, &total) < 1) return;
  if (strcmp(command, "end") == 0) {
    check(SF_Destroy(file), "SF_Destroy");
    if (rank == 0) printf("0 0 1\n");
  } else {
    int writes = strcmp(command, "write") == 0;
    if (writes) check(SF_Create(path, total, total, bytes, &file), "SF_Create");
    memset(buffer, 0, bytes);
    GA_Sync();
    start = now();
    good = move(writes, bytes, total / bytes);
    end = now();
    GA_Igop(&good, 1, "min");
    GA_Dgop(&start, 1, "min");
    GA_Dgop(&end, 1, "max");
    if (rank == 0) printf("%.9f %.9f %d\n", start, end, good);
  }
  fflush(stdout);
}

int main(int count, char** arguments) {
  char line[256] = "";
  if (count != 2) return 2;
  MPI_Init(&count, &arguments);
  GA_Initialize();
  rank = GA_Nodeid();
  processes = GA_Nnodes();
  snprintf(path, sizeof path, "%s/ga_shared", arguments[1]);
  MA_init(MT_DBL, 1000000, 1000000);
  buffer = aligned_alloc(4096, 1 << 20);
  if (rank == 0) printf("0 0 1\n");
  fflush(stdout);
  for (next(line, sizeof line, 2000); strncmp(line, "quit", 4) != 0; next(line, sizeof line, 2000))
    obey(line);
  GA_Terminate();
  MPI_Finalize();
  return 0;
}
