/* A C program of a user: a file, and an error. */
#include <stdio.h>

#include "outcore/outcore.h"

int main(void) {
  double values[2] = {1.5, 2.5}, found[2] = {0, 0};
  int file;
  if (oc_eaf_open("values", NULL, &file)) return 1;
  if (oc_eaf_write(file, 0, values, sizeof values)) return 2;
  if (oc_eaf_read(file, 0, found, sizeof found, NULL) || found[1] != values[1]) return 3;
  if (oc_eaf_close(file)) return 4;
  puts(oc_strerror(oc_eaf_read(file, 0, found, sizeof found, NULL)));
  return 0;
}
