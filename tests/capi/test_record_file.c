/* Record files and lists of byte ranges from C: what every function returns. */
#define _DEFAULT_SOURCE /* mkdtemp, usleep */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "outcore/outcore.h"
#include "support/c_check.h"

static char scratch[] = "/var/tmp/outcore-test-XXXXXX";
static int world = 0;

static int created(int64_t records) {
  oc_rf_options options = {.size = sizeof options};
  int file = 0;
  options.records = records;
  EXPECT(oc_rf_create(world, "vectors", &options, &file) == OC_OK);
  EXPECT(file > 0);
  return file;
}

static void puts_and_gets(void) {
  int file = created(3);
  char in[64] = "";
  int64_t size = -1;
  EXPECT(oc_rf_put(file, 2, "a record", 8) == OC_OK);
  EXPECT(oc_rf_get(file, 2, in, sizeof in, &size) == OC_OK && size == 8 && memcmp(in, "a record", 8) == 0);
  EXPECT(oc_rf_put(file, 2, "one that has grown", 18) == OC_OK);
  EXPECT(oc_rf_get(file, 2, in, sizeof in, &size) == OC_OK && size == 18);
  EXPECT(memcmp(in, "one that has grown", 18) == 0);
  EXPECT(oc_rf_put(file, 2, "", 0) == OC_OK && oc_rf_size(file, 2, &size) == OC_OK && size == 0);
  EXPECT(oc_rf_put(file, 2, in, 18) == OC_OK);
  EXPECT(oc_rf_size(file, 2, &size) == OC_OK && size == 18);
  EXPECT(oc_rf_capacity(file, 2, &size) == OC_OK && size >= 18 && size <= 18 + 2 + 64);
  EXPECT(oc_rf_get(file, 2, in, 17, &size) == EMSGSIZE);
  EXPECT(oc_rf_get(file, 2, in, 18, NULL) == OC_OK);
  EXPECT(oc_rf_erase(file, 2) == OC_OK && oc_rf_get(file, 2, in, sizeof in, &size) == ENOENT);
  EXPECT(oc_rf_sync(file) == OC_OK && oc_rf_flush(file) == OC_OK);
  EXPECT(oc_rf_close(file) == OC_OK && oc_rf_close(file) == EBADF);
}

static void many_requests(void) {
  enum { count = 200 };
  int file = created(count), i, done = 0;
  int64_t requests[count], size = 0;
  char *out = malloc(count * count), *in = calloc(count, count);
  for (i = 0; i < count * count; ++i) out[i] = (char)(i * 7 + i / 100);
  for (i = 0; i < count; ++i) EXPECT(oc_rf_put_async(file, i, out + i * count, i, &requests[i]) == OC_OK);
  for (i = 0; i < count; ++i) EXPECT(oc_wait(requests[i], &size) == OC_OK && size == i);
  EXPECT(oc_wait(requests[0], NULL) == EINVAL);
  for (i = 0; i < count; ++i) EXPECT(oc_rf_get_async(file, i, in + i * count, count, &requests[i]) == OC_OK);
  while (oc_test(requests[7], &done) == OC_OK && !done) usleep(100);
  EXPECT(done == 1);
  for (i = 0; i < count; ++i) {
    EXPECT(oc_wait(requests[i], &size) == OC_OK && size == i);
    EXPECT(memcmp(in + i * count, out + i * count, (size_t)i) == 0);
  }
  EXPECT(oc_rf_close(file) == OC_OK);
  free(out);
  free(in);
}

static void bad_arguments(void) {
  oc_rf_options options = {.size = sizeof options};
  int file = created(1), none = 0;
  int64_t size = 0, request = 0;
  char in[4];
  EXPECT(oc_rf_put(file, 1, "x", 1) == EINVAL && oc_rf_put(file, -1, "x", 1) == EINVAL);
  EXPECT(oc_rf_put(file, 0, NULL, 1) == EINVAL && oc_rf_put(file, 0, "x", -1) == EINVAL);
  EXPECT(oc_rf_put_async(file, 0, "x", 1, NULL) == EINVAL &&
         oc_rf_get_async(file, 7, in, 4, &request) == EINVAL);
  EXPECT(oc_rf_size(file, 0, &size) == ENOENT && oc_rf_capacity(file, 0, &size) == ENOENT);
  EXPECT(strstr(oc_strerror(ENOENT), "record 0 of vectors") != NULL);
  EXPECT(oc_rf_size(file, 0, NULL) == EINVAL && oc_test(999, NULL) == EINVAL);
  EXPECT(oc_rf_put(999, 0, "x", 1) == EBADF && oc_rf_sync(999) == EBADF);
  EXPECT(oc_rf_close(file) == OC_OK);
  EXPECT(oc_rf_create(world, "x", NULL, &none) == EINVAL); /* how many records? */
  options.records = 1;
  options.placement = 7;
  EXPECT(oc_rf_create(world, "x", &options, &none) == EINVAL);
  options.placement = OC_PLACEMENT_AUTO;
  EXPECT(oc_rf_create(world, NULL, &options, &none) == EINVAL);
  EXPECT(oc_rf_create(world, "x", &options, NULL) == EINVAL);
  EXPECT(oc_rf_create(999, "x", &options, &none) == EBADF);
  options.hard_limit_bytes = 4096;
  EXPECT(oc_rf_create(world, "limited", &options, &file) == OC_OK);
  EXPECT(oc_rf_put(file, 0, scratch, 4) == OC_OK);
  {
    char* large = calloc(1, 1 << 20);
    EXPECT(oc_rf_put(file, 0, large, 1 << 20) == EFBIG);
    free(large);
  }
  EXPECT(oc_rf_get(file, 0, in, 4, &size) == OC_OK && size == 4 && memcmp(in, scratch, 4) == 0);
  EXPECT(oc_rf_close(file) == OC_OK);
}

static void lists_of_pieces(void) {
  int file = 0, i;
  char out[3][5] = {"abcd", "efgh", "ijkl"}, in[3][5] = {"", "", ""}, gap = 'x';
  oc_sf_range written[3], asked[3], between = {4, NULL, 1}, bad = {0, NULL, 1};
  int64_t request = 0;
  for (i = 0; i < 3; ++i) {
    written[i].offset = asked[i].offset = 1000 * i;
    written[i].bytes = asked[i].bytes = 4;
    written[i].buffer = out[i];
    asked[i].buffer = in[i];
  }
  between.buffer = &gap;
  EXPECT(oc_sf_create(world, "lists", NULL, &file) == OC_OK);
  EXPECT(oc_sf_writev(file, 2, written) == OC_OK);
  EXPECT(oc_sf_writev_async(file, 1, written + 2, &request) == OC_OK && oc_wait(request, NULL) == OC_OK);
  EXPECT(oc_sf_readv(file, 3, asked) == OC_OK && memcmp(in, out, sizeof in) == 0);
  memset(in, 0, sizeof in);
  EXPECT(oc_sf_readv_async(file, 3, asked, &request) == OC_OK && oc_wait(request, NULL) == OC_OK);
  EXPECT(memcmp(in, out, sizeof in) == 0);
  EXPECT(oc_sf_readv(file, 1, &between) == OC_OK && gap == 0);
  EXPECT(oc_sf_readv(file, 0, NULL) == OC_OK);
  EXPECT(oc_sf_readv(file, -1, asked) == EINVAL && oc_sf_writev(file, 1, NULL) == EINVAL);
  EXPECT(oc_sf_writev(file, 1, &bad) == EINVAL && oc_sf_readv_async(file, 1, asked, NULL) == EINVAL);
  EXPECT(oc_sf_close(file) == OC_OK);
}

/* In a forked child every call on a file of the parent returns EBADF at once, and the file stays as it is. */
static void forked_children(void) {
  int file = created(3), list = 0, status = -1;
  char in[8] = "";
  int64_t request = 0;
  pid_t child;
  EXPECT(oc_sf_create(world, "forked", NULL, &list) == OC_OK && oc_sf_write(list, 0, "whole", 5) == OC_OK);
  EXPECT(oc_rf_put(file, 0, "whole", 5) == OC_OK && oc_rf_put_async(file, 1, "whole", 5, &request) == OC_OK);
  child = fork();
  if (child == 0) {
    failures = 0;
    EXPECT(oc_rf_put(file, 2, "child", 5) == EBADF && oc_rf_get(file, 0, in, 5, NULL) == EBADF);
    EXPECT(oc_wait(request, NULL) == EBADF && oc_rf_sync(file) == EBADF);
    EXPECT(oc_sf_write(list, 0, "child", 5) == EBADF && oc_sf_read(list, 0, in, 5) == EBADF);
    EXPECT(oc_sf_create(world, "another", NULL, &list) == EBADF);
    fflush(stdout);
    _exit(failures != 0);
  }
  EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT(oc_wait(request, NULL) == OC_OK);
  EXPECT(oc_rf_get(file, 0, in, 5, NULL) == OC_OK && memcmp(in, "whole", 5) == 0);
  EXPECT(oc_rf_get(file, 2, in, 5, NULL) == ENOENT);
  EXPECT(oc_sf_read(list, 0, in, 5) == OC_OK && memcmp(in, "whole", 5) == 0);
  EXPECT(oc_rf_close(file) == OC_OK && oc_sf_close(list) == OC_OK);
}

static void remove_scratch(void) {
  rmdir(scratch);
}

int main(void) {
  oc_world_options options = {.size = sizeof options};
  if (!mkdtemp(scratch)) return 1;
  atexit(remove_scratch); /* runs after the library has removed its directory there */
  options.scratch = scratch;
  EXPECT(oc_world_self(&options, &world) == OC_OK);
  puts_and_gets();
  many_requests();
  bad_arguments();
  lists_of_pieces();
  forked_children();
  EXPECT(oc_world_close(world) == OC_OK);
  printf("%d failed\n", failures);
  return failures != 0;
}
