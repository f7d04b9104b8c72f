/* Elementary I/O by its classic names: what every function returns. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compat/long_name.h"
#include "outcore/compat/elio.h"
#include "support/c_check.h"

/* Names of any length that the file system allows. */
static void long_names(const char* directory) {
  char name[long_name_bytes], found[long_name_bytes];
  int depth = long_name_depth;
  Fd_t file;
  make_long_name(directory, name);
  file = elio_open(name, ELIO_RW, ELIO_PRIVATE);
  EXPECT(file != NULL && strcmp(file->name, name) == 0 && elio_write(file, 0, "d", 1) == 1);
  EXPECT(elio_close(file) == ELIO_OK && elio_dirname(name, found, sizeof found) == ELIO_OK);
  EXPECT(elio_delete(name) == ELIO_OK);
  *strrchr(name, '/') = 0;
  EXPECT(strcmp(found, name) == 0);
  for (; depth-- > 0; *strrchr(name, '/') = 0) EXPECT(rmdir(name) == 0);
}

/* The text of any code, whatever failed last. */
static void texts(const char* absent) {
  char message[80];
  int code;
  elio_errmsg(ELIO_PENDING_ERR, message);
  EXPECT(strstr(message, "ELIO: open ") != NULL);
  EXPECT(elio_truncate(NULL, 0) < 0);
  elio_errmsg(ELIO_PENDING_ERR, message);
  EXPECT(strcmp(message, "a file could not be opened") == 0);
  elio_errmsg(-1977, message);
  EXPECT(strcmp(message, "end of the file") == 0);
  for (code = -2000; code <= -1976; ++code) {
    elio_errmsg(code, message);
    EXPECT(message[0] != 0);
  }
  elio_errmsg(-2001, message);
  EXPECT(message[0] == 0);
  elio_errmsg(-1975, message);
  EXPECT(message[0] == 0);
  elio_errmsg(ELIO_OK, message);
  EXPECT(strcmp(message, "OK") == 0 && elio_open(absent, ELIO_R, ELIO_PRIVATE) == NULL);
}

int main(void) {
  enum { count = 20, record = 3000 };
  char directory[] = "/var/tmp/outcore-test-XXXXXX", path[100], found[100], message[80];
  char *out = malloc(count * record), *in = calloc(count, record);
  io_request_t ids[count], none = 4711;
  Fd_t file, other;
  Off_t length = -1;
  stat_t status;
  int i, state = 0;
  if (!mkdtemp(directory)) return 1;
  snprintf(path, sizeof path, "%s/file", directory);
  for (i = 0; i < count * record; ++i) out[i] = (char)(i * 3 + i / 700);
  file = elio_open(path, ELIO_RW, ELIO_PRIVATE);
  EXPECT(file != NULL && strcmp(file->name, path) == 0);
  EXPECT(elio_write(file, 10, out, 100) == 100 && elio_read(file, 10, in, 100) == 100);
  EXPECT(memcmp(in, out, 100) == 0);
  EXPECT(elio_read(file, 60, in, 100) < 0 && memcmp(in, out + 50, 50) == 0); /* across the end */
  elio_errmsg(-1977, message);
  EXPECT(strstr(message, "ELIO: read 100") != NULL);
  for (i = 0; i < count; ++i)
    EXPECT(elio_awrite(file, (Off_t)i * record, out + i * record, record, &ids[i]) == ELIO_OK);
  for (i = count; i-- > 0;) EXPECT(elio_wait(&ids[i]) == ELIO_OK && ids[i] == ELIO_DONE);
  /* Another descriptor of the file sees the data at once. */
  other = elio_open(path, ELIO_R, ELIO_SHARED);
  for (i = 0; i < count; ++i)
    EXPECT(elio_aread(other, (Off_t)i * record, in + i * record, record, &ids[i]) == ELIO_OK);
  do EXPECT(elio_probe(&ids[0], &state) == ELIO_OK);
  while (state == ELIO_PENDING);
  for (i = 0; i < count; ++i) EXPECT(elio_wait(&ids[i]) == ELIO_OK);
  EXPECT(memcmp(in, out, count * record) == 0);
  EXPECT(elio_write(other, 0, out, 4) < 0);
  EXPECT(elio_aread(other, count * record - 5, in, 10, &ids[0]) == ELIO_OK);
  i = elio_wait(&ids[0]);
  elio_errmsg(i, message);
  EXPECT(i < 0 && strstr(message, "ELIO: read 10 bytes") != NULL);
  EXPECT(elio_wait(&none) < 0 && elio_read(file, 0.5, in, 4) < 0 && elio_read(file, -4, in, 4) < 0);
  EXPECT(elio_length(file, &length) == ELIO_OK && length == count * record);
  EXPECT(elio_truncate(file, 7) == ELIO_OK && elio_length(file, &length) == ELIO_OK && length == 7);
  EXPECT(elio_fsync(file) == ELIO_OK);
  EXPECT(elio_dirname(path, found, sizeof found) == ELIO_OK && strcmp(found, directory) == 0);
  EXPECT(elio_dirname(path, found, 5) < 0);
  EXPECT(elio_stat(found, &status) == ELIO_OK && status.avail > 0 && status.fs == ELIO_UFS);
  EXPECT(elio_aread(other, 0, in, 7, &ids[0]) == ELIO_OK);
  EXPECT(elio_close(other) == ELIO_OK && elio_wait(&ids[0]) == ELIO_OK && memcmp(in, out, 7) == 0 &&
         elio_close(file) == ELIO_OK && elio_delete(path) == ELIO_OK);
  EXPECT(elio_delete(path) == ELIO_OK && elio_delete(directory) < 0);
  EXPECT(elio_open(path, ELIO_R, ELIO_PRIVATE) == NULL);
  texts(path);
  long_names(directory);
  rmdir(directory);
  free(out);
  free(in);
  printf("%d failed\n", failures);
  return failures != 0;
}
