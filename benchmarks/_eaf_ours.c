/* Reads or writes a file of records through the C interface, and prints the seconds from open to close.
 * Arguments: directory, write|read, sequential|random, record size in bytes (a multiple of 8), records.
 * The counterpart of _eaf_peer.f90: same order of records, same check of every record. */
#define _POSIX_C_SOURCE 200112L
#include <string.h>

#include "_eaf_program.h"

static int64_t* permutation(int64_t records, int shuffle) {
  int64_t *order = malloc((size_t)records * sizeof *order), k, j, swapped;
  uint64_t state = 12345;
  for (k = 0; k < records; ++k) order[k] = k;
  for (k = records - 1; shuffle && k > 0; --k) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    j = (int64_t)(state >> 1) % (k + 1);
    swapped = order[k];
    order[k] = order[j];
    order[j] = swapped;
  }
  return order;
}

int main(int count, char** arguments) {
  oc_eaf_options options = {.size = sizeof options};
  int file = 0, writing;
  int64_t bytes, records, i, *order;
  double *record, start;
  if (count != 6) return 2;
  options.scratch = arguments[1];
  options.keep = 1;
  writing = strcmp(arguments[2], "write") == 0;
  bytes = atoll(arguments[4]);
  records = atoll(arguments[5]);
  order = permutation(records, strcmp(arguments[3], "random") == 0);
  record = malloc((size_t)bytes);
  for (i = 0; i < bytes / (int64_t)sizeof *record; ++i) record[i] = 1;

  start = now();
  check(oc_eaf_open("records", &options, &file));
  for (i = 0; i < records; ++i) {
    if (writing) {
      record[0] = (double)(order[i] + 1); /* as Fortran numbers records */
      check(oc_eaf_write(file, order[i] * bytes, record, bytes));
    } else {
      check(oc_eaf_read(file, order[i] * bytes, record, bytes, NULL));
      if (record[0] != (double)(order[i] + 1)) {
        fprintf(stderr, "wrong record\n");
        return 1;
      }
    }
  }
  check(oc_eaf_close(file));
  printf("%.6f\n", now() - start);
  return 0;
}
