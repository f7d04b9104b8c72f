/* A disk that takes no more, here a limit on the size of files: each kind of file and array returns the error
 * and its text, and keeps what it had. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "outcore/outcore.h"
#include "support/c_check.h"

enum { count = 1 << 20 }; /* doubles: 8 MiB */
static char scratch[] = "/var/tmp/outcore-test-XXXXXX", path[64];
static double values[count], found[count];
static const int64_t none[1] = {0}, shape[1] = {count}, few[1] = {1000};
static int world;

/* If `full` is not 0, no file can grow beyond 1 MiB. */
static void fill_disk(int full) {
  static struct rlimit before;
  struct rlimit limit;
  if (before.rlim_max == 0) getrlimit(RLIMIT_FSIZE, &before);
  limit = before;
  if (full) limit.rlim_cur = 1 << 20;
  setrlimit(RLIMIT_FSIZE, &limit);
}

/* Of several calls, the first that failed gives the error. */
static int is_full(int code) {
  return code == EFBIG || code == ENOSPC;
}

static void exclusive_file(void) {
  oc_eaf_options options = {.size = sizeof options, .scratch = scratch};
  int file = 0, code;
  EXPECT(oc_eaf_open("full", &options, &file) == OC_OK && oc_eaf_write(file, 0, values, 8000) == OC_OK);
  fill_disk(1);
  code = oc_eaf_write(file, 8000, values, sizeof values - 8000);
  if (code == OC_OK) code = oc_eaf_flush(file);
  EXPECT(is_full(code) && strstr(oc_last_error(), "full") != NULL);
  fill_disk(0);
  EXPECT(oc_eaf_read(file, 0, found, 8000, NULL) == OC_OK && memcmp(values, found, 8000) == 0);
  EXPECT(oc_eaf_write(file, 0, values, sizeof values) == OC_OK && oc_eaf_delete(file) == OC_OK);
}

static void shared_file(void) {
  oc_sf_options options = {.size = sizeof options, .components_per_node = 1};
  int file = 0, code;
  EXPECT(oc_sf_create(world, "full", &options, &file) == OC_OK);
  EXPECT(oc_sf_write(file, 0, values, 8000) == OC_OK && oc_sf_sync(file) == OC_OK);
  fill_disk(1);
  code = oc_sf_write(file, 8000, values, sizeof values - 8000);
  if (code == OC_OK) code = oc_sf_sync(file);
  EXPECT(is_full(code) && strlen(oc_last_error()) > 20);
  fill_disk(0);
  EXPECT(oc_sf_read(file, 0, found, 8000) == OC_OK && memcmp(values, found, 8000) == 0);
  EXPECT(oc_sf_destroy(file) == OC_OK);
}

static void record_file(void) {
  oc_rf_options options = {.size = sizeof options, .records = 2};
  int file = 0, code;
  int64_t bytes = 0;
  EXPECT(oc_rf_create(world, "full", &options, &file) == OC_OK);
  EXPECT(oc_rf_put(file, 1, values, 8000) == OC_OK);
  fill_disk(1);
  code = oc_rf_put(file, 1, values, sizeof values);
  EXPECT(is_full(code));
  fill_disk(0);
  EXPECT(oc_rf_get(file, 1, found, sizeof found, &bytes) == OC_OK && bytes == 8000);
  EXPECT(memcmp(values, found, 8000) == 0);
  oc_rf_close(file);
}

/* A commit that fails leaves the state of the one before it. */
static void disk_array(void) {
  oc_dra_options options = {.size = sizeof options, .path = path};
  int array = 0, code, last;
  snprintf(path, sizeof path, "%s/array", scratch);
  EXPECT(oc_dra_create(world, OC_FLOAT64, 1, shape, &options, &array) == OC_OK);
  EXPECT(oc_dra_put(array, none, few, values, NULL) == OC_OK && oc_dra_flush(array, "first") == OC_OK);
  fill_disk(1);
  memset(found, 0, sizeof found);
  code = oc_dra_put(array, none, shape, found, NULL);
  if (code == OC_OK) code = oc_dra_flush(array, "second");
  EXPECT(is_full(code) && strlen(oc_last_error()) > 20);
  last = oc_dra_close(array);
  EXPECT(last == OC_OK || is_full(last));
  EXPECT(oc_dra_close(array) == EBADF);
  fill_disk(0);
}

static void checkpoint(void) {
  int saving = 0, saved = 0, code;
  int64_t number = 7, back = 0;
  snprintf(path, sizeof path, "%s/kept", scratch);
  EXPECT(oc_checkpoint_begin(world, path, NULL, &saving) == OC_OK);
  EXPECT(oc_checkpoint_add_values(saving, "number", OC_INT64, 0, NULL, &number) == OC_OK);
  EXPECT(oc_checkpoint_commit(saving, "first") == OC_OK);
  fill_disk(1);
  EXPECT(oc_checkpoint_begin(world, path, NULL, &saving) == OC_OK);
  EXPECT(oc_checkpoint_add_values(saving, "values", OC_FLOAT64, 1, shape, values) == OC_OK);
  code = oc_checkpoint_commit(saving, "second");
  EXPECT(is_full(code));
  fill_disk(0);
  EXPECT(oc_checkpoint_open(world, path, &saved) == OC_OK);
  EXPECT(oc_checkpoint_read_values(saved, "number", &back, sizeof back) == OC_OK && back == 7);
  EXPECT(oc_checkpoint_close(saved) == OC_OK);
}

int main(void) {
  oc_world_options options = {.size = sizeof options, .memory_bytes = 64 << 20, .scratch = scratch};
  char command[96];
  int i;
  signal(SIGXFSZ, SIG_IGN);
  for (i = 0; i < count; ++i) values[i] = i;
  if (!mkdtemp(scratch)) return 1;
  EXPECT(oc_world_self(&options, &world) == OC_OK);
  exclusive_file();
  shared_file();
  record_file();
  disk_array();
  checkpoint();
  EXPECT(oc_world_close(world) == OC_OK);
  snprintf(command, sizeof command, "rm -rf %s", scratch);
  EXPECT(system(command) == 0);
  printf("%d failed\n", failures);
  return failures != 0;
}
