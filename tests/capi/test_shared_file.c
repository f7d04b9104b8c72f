/* Shared files from C: what every function returns. */
#define _DEFAULT_SOURCE /* mkdtemp, usleep */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outcore/outcore.h"
#include "support/c_check.h"

static char scratch[] = "/var/tmp/outcore-test-XXXXXX";
static int world = 0;

static int created(const char* name) {
  int file = 0;
  EXPECT(oc_sf_create(world, name, NULL, &file) == OC_OK);
  EXPECT(file > 0);
  return file;
}

static void writes_and_reads(void) {
  int file = created("ints"), i;
  double out[1000], in[1000] = {0};
  int64_t bytes = -1, free_bytes = -1;
  char type[16] = "";
  for (i = 0; i < 1000; ++i) out[i] = i;
  EXPECT(oc_sf_write(file, 80, out, sizeof out) == OC_OK);
  EXPECT(oc_sf_read(file, 80, in, sizeof in) == OC_OK);
  EXPECT(memcmp(in, out, sizeof in) == 0);
  EXPECT(oc_sf_read(file, 0, in, 80) == OC_OK && in[0] == 0 && in[9] == 0);
  EXPECT(oc_sf_length(file, &bytes) == OC_OK && bytes == 8080);
  EXPECT(oc_sf_stat(file, &free_bytes, type, sizeof type) == OC_OK && free_bytes > 0 && type[0]);
  EXPECT(oc_sf_sync(file) == OC_OK && oc_sf_flush(file) == OC_OK);
  EXPECT(oc_sf_close(file) == OC_OK);
  EXPECT(oc_sf_close(file) == EBADF);
}

static void many_requests(void) {
  enum { count = 300, record = 4000 };
  int file = created("many"), i, done = -1;
  char *out = malloc(count * record), *in = malloc(count * record);
  int64_t requests[count];
  for (i = 0; i < count * record; ++i) out[i] = (char)(i * 7 + i / 1000);
  for (i = 0; i < count; ++i)
    EXPECT(oc_sf_write_async(file, (int64_t)i * record, out + i * record, record, &requests[i]) == OC_OK);
  EXPECT(oc_wait_all(count, requests) == OC_OK);
  EXPECT(oc_wait(requests[0], NULL) == EINVAL);
  for (i = 0; i < count; ++i)
    EXPECT(oc_sf_read_async(file, (int64_t)i * record, in + i * record, record, &requests[i]) == OC_OK);
  while (oc_test(requests[0], &done) == OC_OK && !done) usleep(100);
  EXPECT(done == 1);
  for (i = 0; i < count; ++i) EXPECT(oc_wait(requests[i], NULL) == OC_OK);
  EXPECT(memcmp(in, out, count * record) == 0);
  EXPECT(oc_sf_destroy(file) == OC_OK);
  free(out);
  free(in);
}

static void limits_and_bad_arguments(void) {
  oc_sf_options options = {.size = sizeof options};
  char buffer[10] = {0};
  int64_t request = 0;
  int file = 0, none = 0;
  options.hard_limit_bytes = 15;
  EXPECT(oc_sf_create(world, "limits", &options, &file) == OC_OK);
  EXPECT(oc_sf_write(file, 6, buffer, 10) == EFBIG);
  EXPECT(strstr(oc_strerror(EFBIG), "hard limit is 15") != NULL);
  EXPECT(oc_sf_write(file, 5, buffer, 10) == OC_OK);
  EXPECT(oc_sf_read(file, 6, buffer, 10) == EINVAL);
  EXPECT(strstr(oc_strerror(EINVAL), "ends at 15") != NULL);
  EXPECT(oc_sf_read_async(file, -1, buffer, 10, &request) == EINVAL);
  EXPECT(oc_sf_write(file, 0, buffer, -1) == EINVAL);
  EXPECT(oc_sf_write(file, 0, NULL, 1) == EINVAL);
  EXPECT(oc_sf_write_async(file, 0, buffer, 1, NULL) == EINVAL);
  EXPECT(oc_wait(12345678, NULL) == EINVAL);
  EXPECT(oc_wait_all(-1, NULL) == EINVAL && oc_wait_all(0, NULL) == OC_OK);
  EXPECT(oc_sf_write(999, 0, buffer, 1) == EBADF);
  EXPECT(oc_sf_close(file) == OC_OK);
  options.placement = 7;
  EXPECT(oc_sf_create(world, "x", &options, &none) == EINVAL);
  EXPECT(oc_sf_create(world, NULL, NULL, &none) == EINVAL && oc_sf_create(world, "", NULL, &none) == EINVAL);
  EXPECT(oc_sf_create(999, "x", NULL, &none) == EBADF && oc_sf_create(world, "x", NULL, NULL) == EINVAL);
}

static void worlds(void) {
  oc_world_options options = {.size = sizeof options};
  int rank = -1, size = -1, other = 0, file = 0;
  EXPECT(oc_world_rank(world, &rank, &size) == OC_OK && rank == 0 && size == 1);
  EXPECT(oc_world_barrier(world) == OC_OK);
  EXPECT(oc_world_mpi(0, NULL, &other) == ENOTSUP);
  options.scratch = "/no/such/directory";
  EXPECT(oc_world_self(&options, &other) == ENOENT);
  options.scratch = scratch;
  EXPECT(oc_world_self(&options, &other) == OC_OK);
  EXPECT(oc_sf_create(other, "left open", NULL, &file) == OC_OK);
  EXPECT(oc_world_close(other) == OC_OK && oc_world_close(other) == EBADF);
  EXPECT(oc_sf_write(file, 0, "x", 1) == EBADF);
}

static void remove_scratch(void) {
  rmdir(scratch);
}

/* Files of three kinds, in one list of requests. */
static void begin_mixture(int eaf, int sf, int rf, double (*in)[100], int64_t* requests) {
  memset(in, 0, 3 * sizeof *in);
  EXPECT(oc_eaf_read_async(eaf, 0, in[0], sizeof *in, &requests[0]) == OC_OK);
  EXPECT(oc_sf_read_async(sf, 0, in[1], sizeof *in, &requests[1]) == OC_OK);
  EXPECT(oc_rf_get_async(rf, 5, in[2], sizeof *in, &requests[2]) == OC_OK);
}

static void mixture(void) {
  int eaf = 0, sf = created("mixed"), rf = 0, i, left = 3, which = -1;
  double out[100], in[3][100];
  int64_t requests[3], bytes = -1, none = 0;
  oc_rf_options records = {.size = sizeof records};
  records.records = 8;
  for (i = 0; i < 100; ++i) out[i] = i;
  EXPECT(oc_eaf_open("mixed", NULL, &eaf) == OC_OK && oc_rf_create(world, "mixed", &records, &rf) == OC_OK);
  EXPECT(oc_eaf_write(eaf, 0, out, sizeof out) == OC_OK && oc_sf_write(sf, 0, out, sizeof out) == OC_OK);
  EXPECT(oc_rf_put(rf, 5, out, sizeof out) == OC_OK);

  begin_mixture(eaf, sf, rf, in, requests);
  EXPECT(oc_wait_all(3, requests) == OC_OK);
  for (i = 0; i < 3; ++i) EXPECT(memcmp(in[i], out, sizeof out) == 0 && oc_wait(requests[i], NULL) == EINVAL);

  begin_mixture(eaf, sf, rf, in, requests);
  while (left > 0) {
    EXPECT(oc_wait_any(left, requests, &which) == OC_OK && which >= 0 && which < left);
    EXPECT(oc_wait(requests[which], &bytes) == OC_OK && bytes == sizeof out);
    requests[which] = requests[--left];
  }
  for (i = 0; i < 3; ++i) EXPECT(memcmp(in[i], out, sizeof out) == 0);
  EXPECT(oc_wait_any(0, NULL, &which) == EINVAL && oc_wait_any(1, &none, &which) == EINVAL);
  EXPECT(oc_eaf_read_async(eaf, 400, in[0], sizeof out, &requests[0]) == OC_OK);
  EXPECT(oc_wait_any(1, requests, NULL) == EINVAL);
  EXPECT(oc_wait_all(1, requests) == OC_END_OF_FILE);
  EXPECT(oc_eaf_delete(eaf) == OC_OK && oc_sf_close(sf) == OC_OK && oc_rf_close(rf) == OC_OK);
}

int main(void) {
  oc_world_options options = {.size = sizeof options};
  if (!mkdtemp(scratch)) return 1;
  atexit(remove_scratch); /* runs after the library has removed its directory there */
  options.scratch = scratch;
  EXPECT(oc_world_self(&options, &world) == OC_OK);
  writes_and_reads();
  many_requests();
  mixture();
  limits_and_bad_arguments();
  worlds();
  EXPECT(oc_world_close(world) == OC_OK);
  printf("%d failed\n", failures);
  return failures != 0;
}
