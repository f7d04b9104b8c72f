/* Writes or reads a file of records, and prints the seconds from open to close: what programs of bench eaf
 * and bench pario share. Arguments: place, write|read, sequential|random, record size in bytes (a multiple of
 * 8), records. Every record that is read is checked. The program that includes this has the four functions.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "_clock.h"

static void open_file(const char* place);
static void write_record(int64_t offset, const double* record, int64_t bytes);
static void read_record(int64_t offset, double* record, int64_t bytes);
static void close_file(void);

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
  int writing;
  int64_t bytes, records, i, *order;
  double *record, start;
  if (count != 6) return 2;
  writing = strcmp(arguments[2], "write") == 0;
  bytes = atoll(arguments[4]);
  records = atoll(arguments[5]);
  order = permutation(records, strcmp(arguments[3], "random") == 0);
  record = malloc((size_t)bytes);
  for (i = 0; i < bytes / (int64_t)sizeof *record; ++i) record[i] = 1;

  start = now();
  open_file(arguments[1]);
  for (i = 0; i < records; ++i) {
    if (writing) {
      record[0] = (double)(order[i] + 1); /* as Fortran numbers records */
      write_record(order[i] * bytes, record, bytes);
    } else {
      read_record(order[i] * bytes, record, bytes);
      if (record[0] != (double)(order[i] + 1)) {
        fprintf(stderr, "wrong record\n");
        return 1;
      }
    }
  }
  close_file();
  printf("%.6f\n", now() - start);
  return 0;
}
