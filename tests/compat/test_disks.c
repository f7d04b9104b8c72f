/* Disks by the classic names, here one of 2 MiB in memory. A full disk gives a code and a text at the write
 * or at its wait, and its content stays. The content of a read-only disk can be read. */
#define _GNU_SOURCE /* unshare */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "outcore/compat/eaf.h"
#include "outcore/compat/elio.h"
#include "outcore/compat/sf.h"
#include "support/c_check.h"

extern const char* oc_pario_last_error(void);

enum { small = 4096, large = 4 << 20 };
static char directory[] = "/var/tmp/outcore-test-XXXXXX", first[small], found[small];

static char* path_of(const char* name) {
  static char path[100];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

/* Mounts a small disk that only this process sees. */
static int mounts(void) {
  return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
         mount("outcore-test", directory, "tmpfs", 0, "size=2m") == 0;
}

static int says_full(const char* where) {
  return strstr(oc_pario_last_error(), "No space left") && strstr(oc_pario_last_error(), where);
}

static void exclusive_file(const char* data) {
  int fd = -1, id = -1, code;
  EXPECT(EAF_Open(path_of("eaf"), EAF_RW, &fd) == EAF_OK && EAF_Write(fd, 0, first, small) == EAF_OK);
  code = EAF_Write(fd, small, data, large);
  EXPECT(code < 0 && EAF_Eof(code) != 0 && says_full("eaf"));
  EXPECT(EAF_Truncate(fd, small) == EAF_OK);
  code = EAF_Awrite(fd, small, data, large, &id);
  EXPECT(code == EAF_OK && EAF_Wait(fd, id) < 0 && says_full("eaf"));
  EXPECT(EAF_Read(fd, 0, found, small) == EAF_OK && memcmp(found, first, small) == 0);
  EXPECT(EAF_Truncate(fd, small) == EAF_OK && EAF_Write(fd, small, data, small) == EAF_OK);
  EXPECT(EAF_Close(fd) == EAF_OK && EAF_Delete(path_of("eaf")) == EAF_OK);
}

static void elementary_file(const char* data) {
  Fd_t file = elio_open(path_of("elio"), ELIO_RW, ELIO_PRIVATE);
  io_request_t id;
  EXPECT(file != NULL && elio_write(file, 0, first, small) == small);
  EXPECT(elio_write(file, small, data, large) < 0 && says_full("elio"));
  EXPECT(elio_truncate(file, small) == ELIO_OK && elio_awrite(file, small, data, large, &id) == ELIO_OK);
  EXPECT(elio_wait(&id) < 0 && says_full("elio"));
  EXPECT(elio_read(file, 0, found, small) == small && memcmp(found, first, small) == 0);
  EXPECT(elio_close(file) == ELIO_OK && elio_delete(path_of("elio")) == ELIO_OK);
}

static void shared_file(char* data) {
  int file = -1, id = -1, code;
  EXPECT(SF_Create(path_of("sf"), -1, -1, -1, &file) == 0);
  EXPECT(SF_Write(file, 0, small, first, &id) == 0 && SF_Wait(&id) == 0);
  code = SF_Write(file, small, large, data, &id);
  if (code == 0) code = SF_Wait(&id);
  EXPECT(code == ENOSPC && says_full("write of 4194304 bytes at offset 4096 of sf:") && says_full(directory));
  EXPECT(strstr(oc_pario_last_error(), "outcore-0") == NULL); /* not the files that it consists of */
  EXPECT(SF_Read(file, 0, small, found, &id) == 0 && SF_Wait(&id) == 0 && memcmp(found, first, small) == 0);
  EXPECT(SF_Destroy(file) == 0);
}

static void read_only_disk(void) {
  int fd = -1;
  long megabytes = 0;
  char type[10];
  EXPECT(EAF_Open(path_of("kept"), EAF_RW, &fd) == EAF_OK && EAF_Write(fd, 0, first, small) == EAF_OK);
  EXPECT(EAF_Close(fd) == EAF_OK);
  EXPECT(mount("none", directory, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
  EXPECT(EAF_Stat(directory, &megabytes, type, sizeof type) == EAF_OK &&
         megabytes == 1); /* 2 but for a file */
  EXPECT(EAF_Open(path_of("kept"), EAF_RW, &fd) != EAF_OK && strstr(oc_pario_last_error(), "Read-only"));
  memset(found, 0, small);
  EXPECT(EAF_Open(path_of("kept"), EAF_R, &fd) == EAF_OK && EAF_Read(fd, 0, found, small) == EAF_OK);
  EXPECT(memcmp(found, first, small) == 0 && EAF_Close(fd) == EAF_OK);
  EXPECT(mount("none", directory, NULL, MS_REMOUNT, NULL) == 0);
  EXPECT(EAF_Delete(path_of("kept")) == EAF_OK);
}

/* A process without permission to write in a directory can ask for the free space there. */
static void directory_of_another_user(void) {
  long megabytes = 0;
  char type[10];
  int code;
  EXPECT(chmod(directory, 0555) == 0 && seteuid(65534) == 0);
  EXPECT(access(directory, R_OK | X_OK) == 0);
  code = EAF_Stat(directory, &megabytes, type, sizeof type);
  EXPECT(seteuid(0) == 0 && chmod(directory, 0755) == 0);
  EXPECT(code == EAF_OK && megabytes == 2 && strcmp(type, "UFS") == 0);
}

int main(void) {
  char* data = calloc(1, large);
  if (!mkdtemp(directory)) return 1;
  if (mounts()) {
    memset(first, 7, small);
    directory_of_another_user();
    exclusive_file(data);
    elementary_file(data);
    read_only_disk();
    shared_file(data);
    umount2(directory, MNT_DETACH);
  } else {
    puts("NOT TESTED without the right to mount a small file system");
  }
  rmdir(directory);
  free(data);
  printf("%d failed\n", failures);
  return failures != 0;
}
