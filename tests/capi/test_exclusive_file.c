/* The C interface, used from C: that the header is C, and what every function returns. */
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

static int opened(const char* name) {
  oc_eaf_options options = {.size = sizeof options};
  int file = 0;
  options.scratch = scratch;
  EXPECT(oc_eaf_open(name, &options, &file) == OC_OK);
  EXPECT(file > 0);
  return file;
}

static void writes_and_reads(void) {
  int file = opened("ints"), at_end = -1;
  double out[1000], in[1000] = {0};
  int64_t moved = -1, bytes = -1;
  int i;
  for (i = 0; i < 1000; ++i) out[i] = i;
  EXPECT(oc_eaf_write(file, 80, out, sizeof out) == OC_OK);
  EXPECT(oc_eaf_read(file, 80, in, sizeof in, &moved) == OC_OK);
  EXPECT(moved == (int64_t)sizeof in && memcmp(in, out, sizeof in) == 0);
  EXPECT(oc_eaf_length(file, &bytes) == OC_OK && bytes == 8080);
  EXPECT(oc_eaf_eof(file, 8079, &at_end) == OC_OK && at_end == 0);
  EXPECT(oc_eaf_eof(file, 8080, &at_end) == OC_OK && at_end == 1);
  EXPECT(oc_eaf_truncate(file, 100) == OC_OK);
  EXPECT(oc_eaf_length(file, &bytes) == OC_OK && bytes == 100);
  EXPECT(oc_eaf_preallocate(file, 5000) == OC_OK);
  EXPECT(oc_eaf_length(file, &bytes) == OC_OK && bytes == 5000);
  EXPECT(oc_eaf_flush(file) == OC_OK);
  EXPECT(oc_eaf_delete(file) == OC_OK);
}

static void short_reads(void) {
  int file = opened("short");
  char buffer[100];
  int64_t moved = -1, request = 0;
  EXPECT(oc_eaf_write(file, 0, "0123456789", 10) == OC_OK);
  EXPECT(oc_eaf_read(file, 4, buffer, 100, &moved) == OC_OK && moved == 6);
  EXPECT(oc_eaf_read(file, 4, buffer, 100, NULL) == OC_END_OF_FILE);
  EXPECT(strstr(oc_strerror(OC_END_OF_FILE), "after 6 bytes") != NULL);
  EXPECT(oc_eaf_read_async(file, 4, buffer, 100, &request) == OC_OK);
  EXPECT(oc_wait(request, NULL) == OC_END_OF_FILE);
  EXPECT(oc_eaf_delete(file) == OC_OK);
}

static void many_requests(void) {
  enum { count = 500, record = 4000 };
  int file = opened("many");
  char *out = malloc(count * record), *in = malloc(count * record);
  int64_t requests[count], moved = 0;
  int i, done = -1;
  for (i = 0; i < count * record; ++i) out[i] = (char)(i * 7 + i / 1000);
  for (i = 0; i < count; ++i)
    EXPECT(oc_eaf_write_async(file, (int64_t)i * record, out + i * record, record, &requests[i]) == OC_OK);
  for (i = count; i-- > 0;) EXPECT(oc_wait(requests[i], &moved) == OC_OK && moved == record);
  for (i = 0; i < count; ++i)
    EXPECT(oc_eaf_read_async(file, (int64_t)i * record, in + i * record, record, &requests[i]) == OC_OK);
  while (oc_test(requests[0], &done) == OC_OK && !done) usleep(100);
  EXPECT(done == 1);
  for (i = 0; i < count; ++i) EXPECT(oc_wait(requests[i], NULL) == OC_OK);
  EXPECT(memcmp(in, out, count * record) == 0);
  EXPECT(oc_wait(requests[0], NULL) == EINVAL);
  EXPECT(oc_test(requests[0], &done) == EINVAL);
  EXPECT(strstr(oc_strerror(EINVAL), "it has ended") != NULL);
  EXPECT(oc_eaf_delete(file) == OC_OK);
  free(out);
  free(in);
}

static void handles(void) {
  int file = opened("handles"), again;
  int64_t bytes;
  char byte = 1;
  EXPECT(oc_eaf_write(file, 0, &byte, 1) == OC_OK);
  EXPECT(oc_eaf_close(file) == OC_OK);
  EXPECT(oc_eaf_close(file) == EBADF);
  EXPECT(oc_eaf_read(file, 0, &byte, 1, NULL) == EBADF);
  EXPECT(oc_eaf_length(0, &bytes) == EBADF);
  EXPECT(oc_eaf_delete(-5) == EBADF);
  EXPECT(oc_eaf_flush(1 << 30) == EBADF);
  EXPECT(strstr(oc_strerror(EBADF), "no such handle") != NULL);
  again = opened("handles");
  EXPECT(again != file);
  EXPECT(oc_eaf_length(again, &bytes) == OC_OK && bytes == 1);
  EXPECT(oc_eaf_delete(again) == OC_OK);
}

static void bad_arguments(void) {
  int file = opened("bad"), other = 0, done = 0;
  int64_t request = 0;
  char buffer[10] = {0};
  oc_eaf_options options = {.size = sizeof options};
  options.scratch = scratch;
  EXPECT(oc_eaf_read(file, -1, buffer, 10, NULL) == EINVAL);
  EXPECT(oc_eaf_write(file, -1, buffer, 10) == EINVAL);
  EXPECT(oc_eaf_read(file, 0, buffer, -10, NULL) == EINVAL);
  EXPECT(strstr(oc_strerror(EINVAL), "negative size: -10") != NULL);
  EXPECT(oc_eaf_write(file, 0, buffer, -10) == EINVAL);
  EXPECT(oc_eaf_read_async(file, 0, buffer, -10, &request) == EINVAL);
  EXPECT(oc_eaf_write_async(file, 0, NULL, 10, &request) == EINVAL);
  EXPECT(oc_eaf_write_async(file, 0, buffer, 10, NULL) == EINVAL);
  EXPECT(oc_eaf_truncate(file, -1) == EINVAL);
  EXPECT(oc_eaf_preallocate(file, -1) == EINVAL);
  EXPECT(oc_eaf_eof(file, -1, &done) == EINVAL);
  EXPECT(oc_eaf_open(NULL, &options, &other) == EINVAL);
  EXPECT(oc_eaf_open("a/b", &options, &other) == EINVAL);
  EXPECT(oc_eaf_open("", &options, &other) == EINVAL);
  EXPECT(oc_test(0, &done) == EINVAL);
  options.size = 0;
  EXPECT(oc_eaf_open("x", &options, &other) == EINVAL && strstr(oc_last_error(), "their size") != NULL);
  options.size = sizeof options;
  options.page_cache = 7;
  EXPECT(oc_eaf_open("x", &options, &other) == EINVAL);
  options.page_cache = OC_PAGE_CACHE_DIRECT;
  options.expected_bytes = (int64_t)1 << 60;
  EXPECT(oc_eaf_open("x", &options, &other) == ENOSPC);
  EXPECT(strstr(oc_strerror(ENOSPC), "free: ") != NULL);
  options.scratch = "/nonexistent";
  EXPECT(oc_eaf_open("x", &options, &other) == ENOENT);
  EXPECT(strstr(oc_strerror(ENOENT), "/nonexistent") != NULL);
  EXPECT(other == 0);
  EXPECT(oc_eaf_delete(file) == OC_OK);
}

static void only_to_read(void) {
  char directory[] = "/var/tmp/outcore-test-XXXXXX", byte = 'x';
  int file = 0, reader = 0;
  int64_t request = 0, moved = 0;
  oc_eaf_options options = {0};
  options.size = sizeof options;
  options.scratch = mkdtemp(directory);
  options.read_only = 1;
  EXPECT(oc_eaf_open("kept", &options, &reader) == EINVAL);
  options.keep = 1;
  EXPECT(oc_eaf_open("kept", &options, &reader) == ENOENT);
  options.read_only = 0;
  EXPECT(oc_eaf_open("kept", &options, &file) == OC_OK && oc_eaf_write(file, 0, &byte, 1) == OC_OK);
  options.read_only = 1;
  EXPECT(oc_eaf_open("kept", &options, &reader) == OC_OK);
  EXPECT(oc_eaf_read(reader, 0, &byte, 1, &moved) == OC_OK && moved == 1 && byte == 'x');
  EXPECT(oc_eaf_write(reader, 0, &byte, 1) == EACCES && oc_eaf_truncate(reader, 0) == EACCES);
  EXPECT(oc_eaf_write_async(reader, 0, &byte, 1, &request) == EACCES);
  EXPECT(oc_eaf_preallocate(reader, 10) == EACCES && oc_eaf_delete(reader) == EACCES);
  EXPECT(oc_eaf_close(reader) == OC_OK && oc_eaf_delete(file) == OC_OK && rmdir(directory) == 0);
}

static void status_of_scratch(void) {
  int64_t free_bytes = -1;
  char type[32] = "", cut[3] = "";
  EXPECT(oc_eaf_stat(scratch, &free_bytes, type, sizeof type) == OC_OK);
  EXPECT(free_bytes > 0 && strlen(type) > 2);
  EXPECT(oc_eaf_stat(scratch, NULL, cut, sizeof cut) == OC_OK);
  EXPECT(strlen(cut) == 2 && strncmp(cut, type, 2) == 0);
  EXPECT(oc_eaf_stat("/nonexistent", &free_bytes, NULL, 0) == ENOENT);
}

/* Structures of programs compiled with older and newer headers. */
static void sizes_of_options(void) {
  struct {
    oc_eaf_options known;
    int64_t unknown;
  } newer = {.known = {.size = sizeof newer, .scratch = scratch}, .unknown = 0};
  oc_eaf_options older = {.size = offsetof(oc_eaf_options, expected_bytes),
                          .expected_bytes = (int64_t)1 << 60};
  int file = 0;
  older.scratch = scratch;
  EXPECT(oc_eaf_open("sizes", &older, &file) == OC_OK && oc_eaf_delete(file) == OC_OK);
  EXPECT(oc_eaf_open("sizes", &newer.known, &file) == OC_OK && oc_eaf_delete(file) == OC_OK);
  newer.unknown = 1;
  EXPECT(oc_eaf_open("sizes", &newer.known, &file) == EINVAL);
  EXPECT(strstr(oc_last_error(), "does not know") != NULL);
  newer.known.size = SIZE_MAX / 2; /* what is not set: memory behind it is not looked at */
  EXPECT(oc_eaf_open("sizes", &newer.known, &file) == EINVAL);
}

static void version(void) {
  const char* text = NULL;
  EXPECT(oc_version(&text) == OC_VERSION && oc_version(NULL) == OC_VERSION);
  EXPECT(text != NULL && strcmp(text, OUTCORE_PROJECT_VERSION) == 0);
}

static void texts(void) {
  EXPECT(strcmp(oc_strerror(OC_OK), "success") == 0);
  EXPECT(strcmp(oc_strerror(EDOM), strerror(EDOM)) == 0);
  EXPECT(strlen(oc_strerror(123456)) > 0);
}

static void remove_scratch(void) {
  rmdir(scratch);
}

int main(void) {
  if (!mkdtemp(scratch)) return 1;
  atexit(remove_scratch); /* runs after the library has removed its directory there */
  writes_and_reads();
  short_reads();
  many_requests();
  handles();
  bad_arguments();
  only_to_read();
  status_of_scratch();
  sizes_of_options();
  version();
  texts();
  printf("%d failed\n", failures);
  return failures != 0;
}
