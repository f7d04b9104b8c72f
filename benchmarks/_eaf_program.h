/* What the programs of bench eaf share. */
#include <outcore/outcore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void check(int code) {
  if (code == OC_OK) return;
  fprintf(stderr, "%s\n", oc_strerror(code));
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
