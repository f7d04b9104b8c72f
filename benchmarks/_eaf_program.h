/* What the programs of bench eaf share that call the C interface. */
#include <outcore/outcore.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int code) {
  if (code == OC_OK) return;
  fprintf(stderr, "%s\n", oc_strerror(code));
  exit(1);
}
