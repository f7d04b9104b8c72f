/* Shared files by their classic names, on one process without MPI: what every function returns. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compat/long_name.h"
#include "outcore/compat/sf.h"
#include "support/c_check.h"

extern int64_t sf_create_(const char* name, const double* hard_limit, const double* soft_limit,
                          const double* typical, int64_t* handle, size_t length);

static char directory[] = "/var/tmp/outcore-test-XXXXXX";

static char* path_of(const char* name) {
  static char path[1024];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

/* At the end: worlds keep files of their own. */
static void remove_directory(void) {
  char command[200];
  snprintf(command, sizeof command, "rm -r %s", directory);
  if (system(command) != 0) perror(directory);
}

/* Names of any length that the file system allows. */
static void long_names(void) {
  char name[long_name_bytes], written[] = "d", read[2] = "";
  int file = -1, id = -1;
  make_long_name(directory, name);
  EXPECT(SF_Create_suffix(name, 100, -1, -1, &file, 12) == 0);
  EXPECT(SF_Write(file, 0, 1, written, &id) == 0 && SF_Wait(&id) == 0);
  EXPECT(SF_Read(file, 0, 1, read, &id) == 0 && SF_Wait(&id) == 0 && read[0] == 'd' && SF_Destroy(file) == 0);
}

int main(void) {
  enum { count = 50, record = 4000 };
  char *out = malloc(count * record), *in = calloc(count, record), message[80];
  int file = -1, other = -1, ids[count], i;
  if (!mkdtemp(directory)) return 1;
  atexit(remove_directory);
  for (i = 0; i < count * record; ++i) out[i] = (char)(i * 5 + i / 1000);
  EXPECT(SF_Create(path_of("amplitudes"), count * record, -1, record, &file) == 0);
  for (i = 0; i < count; ++i)
    EXPECT(SF_Write(file, (double)i * record, record, out + i * record, &ids[i]) == 0);
  EXPECT(SF_Waitall(ids, count) == 0 && SF_Wait(&ids[0]) == 0); /* ended ones do not count */
  for (i = 0; i < count; ++i)
    EXPECT(SF_Read(file, (double)i * record, record, in + i * record, &ids[i]) == 0);
  for (i = 0; i < count; ++i) EXPECT(SF_Wait(&ids[i]) == 0);
  EXPECT(memcmp(in, out, count * record) == 0);

  /* A file cannot grow beyond its hard limit. */
  i = SF_Write(file, count * record - 4, 5, out, &ids[0]);
  if (i == 0) i = SF_Wait(&ids[0]);
  EXPECT(i == EFBIG);
  SF_Errmsg(i, message);
  EXPECT(strstr(message, "SF: write of 5 bytes at offset 199996 of amplitudes: File too large") == message);
  EXPECT(SF_Write(file, count * record - 4, 4, out, &ids[0]) == 0 && SF_Wait(&ids[0]) == 0);

  EXPECT(SF_Close(file) == 0 && SF_Read(file, 0, 4, in, &ids[0]) == EBADF);
  EXPECT(SF_Open(file) == 0 && SF_Read(file, 0, 4, in, &ids[0]) == 0 && SF_Wait(&ids[0]) == 0);
  EXPECT(SF_Fsync(file) == 0 && SF_Rwtor(file) == 0 && SF_Write(file, 0, 4, out, &ids[0]) == EROFS);
  EXPECT(SF_Create_suffix(path_of("amplitudes"), -1, 1e6, -1, &other, 3) == 0 && other != file);
  EXPECT(SF_Write(other, 0.5, 4, out, &ids[0]) == EINVAL && SF_Write(other, 0, -4, out, &ids[0]) == EINVAL);
  ids[0] = 123456;
  EXPECT(SF_Wait(&ids[0]) == EINVAL && SF_Write(999, 0, 4, out, &ids[0]) == EBADF);
  EXPECT(SF_Destroy(other) == 0 && SF_Destroy(other) == EBADF && SF_Destroy(file) == 0);
  EXPECT(SF_Create(path_of("no/such/directory/file"), -1, -1, -1, &file) == ENOENT);
  SF_Errmsg(ENOENT, message);
  EXPECT(strstr(message, "SF: create file: No such file or directory in /var/tmp/") == message);
  long_names();
  SF_Errmsg(ENOENT, message);
  EXPECT(strlen(message) > 0);
  { /* A name of Fortran that is longer than any memory. */
    const double unknown = -1;
    int64_t handle = -1;
    EXPECT(sf_create_("name", &unknown, &unknown, &unknown, &handle, PTRDIFF_MAX) == ENOMEM);
  }
  free(out);
  free(in);
  printf("%d failed\n", failures);
  return failures != 0;
}
