/* Reads or writes a file of records by the classic names of EAF, and prints the seconds from open to close.
 * Arguments: file, write|read, sequential|random, record size in bytes (a multiple of 8), records, passes. */
#define _POSIX_C_SOURCE 200112L
#include <eaf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void check(int code, const char* what) {
  char text[80] = "";
  if (code == 0) return;
  EAF_Errmsg(code, text);
  fprintf(stderr, "%s: %s\n", what, text);
  exit(1);
}

static long* permutation(long records, int shuffle) {
  long *order = malloc((size_t)records * sizeof *order), k, j, swapped;
  uint64_t state = 12345;
  for (k = 0; k < records; ++k) order[k] = k;
  for (k = records - 1; shuffle && k > 0; --k) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    j = (long)(state >> 1) % (k + 1);
    swapped = order[k];
    order[k] = order[j];
    order[j] = swapped;
  }
  return order;
}

int main(int count, char** arguments) {
  int file = 0, writing, pass;
  long bytes, records, i, *order;
  double *record, start;
  if (count != 7) return 2;
  writing = strcmp(arguments[2], "write") == 0;
  bytes = atol(arguments[4]);
  records = atol(arguments[5]);
  order = permutation(records, strcmp(arguments[3], "random") == 0);
  record = malloc((size_t)bytes);
  for (i = 0; i < bytes / (long)sizeof *record; ++i) record[i] = 1;

  start = now();
  check(EAF_Open(arguments[1], EAF_RW, &file), "EAF_Open");
  for (pass = 0; pass < atoi(arguments[6]); ++pass)
    for (i = 0; i < records; ++i) {
      double offset = (double)order[i] * (double)bytes;
      if (writing) {
        record[0] = (double)order[i];
        check(EAF_Write(file, offset, record, (size_t)bytes), "EAF_Write");
      } else {
        check(EAF_Read(file, offset, record, (size_t)bytes), "EAF_Read");
        if (record[0] != (double)order[i]) {
          fprintf(stderr, "wrong record\n");
          return 1;
        }
      }
    }
  check(EAF_Close(file), "EAF_Close");
  printf("%.6f\n", now() - start);
  return 0;
}
