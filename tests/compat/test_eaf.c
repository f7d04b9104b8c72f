/* Exclusive access files by their classic names: what every function returns. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compat/long_name.h"
#include "outcore/compat/chemio.h"
#include "outcore/compat/eaf.h"
#include "outcore/outcore.h"
#include "support/c_check.h"

extern const char* oc_pario_last_error(void);
extern int64_t eaf_open_(const char* name, const int64_t* type, int64_t* fd, size_t length);

static char directory[] = "/var/tmp/outcore-test-XXXXXX";

static const char* path_of(const char* name) {
  static char path[1024];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

static void writes_reads_and_opens_again(void) {
  double out[1000], in[1000] = {0}, length = -1;
  int fd = -1, i, again = -1;
  for (i = 0; i < 1000; ++i) out[i] = i;
  EXPECT(EAF_Open(path_of("ints"), EAF_RW, &fd) == EAF_OK);
  EXPECT(EAF_Write(fd, 80, out, sizeof out) == EAF_OK);
  EXPECT(EAF_Read(fd, 80, in, sizeof in) == EAF_OK && memcmp(in, out, sizeof in) == 0);
  EXPECT(EAF_Length(fd, &length) == EAF_OK && length == 8080);
  EXPECT(EAF_Close(fd) == EAF_OK && EAF_Close(fd) != EAF_OK);
  memset(in, 0, sizeof in);
  EXPECT(EAF_Open(path_of("ints"), EAF_R, &again) == EAF_OK);
  EXPECT(EAF_Read(again, 80, in, sizeof in) == EAF_OK && memcmp(in, out, sizeof in) == 0);
  EXPECT(EAF_Write(again, 0, out, 8) != EAF_OK); /* it is to be read only */
  EXPECT(EAF_Close(again) == EAF_OK);
  EXPECT(EAF_Open(path_of("ints"), EAF_W, &fd) == EAF_OK);
  EXPECT(EAF_Length(fd, &length) == EAF_OK && length == 0); /* it is empty again */
  EXPECT(EAF_Read(fd, 0, in, 8) != EAF_OK);
  EXPECT(EAF_Truncate(fd, 500) == EAF_OK && EAF_Length(fd, &length) == EAF_OK && length == 500);
  EXPECT(EAF_Close(fd) == EAF_OK);
  EXPECT(access(path_of("ints"), F_OK) == 0 && EAF_Delete(path_of("ints")) == EAF_OK);
  EXPECT(access(path_of("ints"), F_OK) != 0 && EAF_Delete(path_of("ints")) == EAF_OK);
  EXPECT(EAF_Open(path_of("ints"), EAF_RW, &fd) == EAF_OK && EAF_Length(fd, &length) == EAF_OK &&
         length == 0);
  EXPECT(EAF_Close(fd) == EAF_OK && EAF_Delete(path_of("ints")) == EAF_OK);
}

static void requests(void) {
  enum { count = 300, record = 5000 };
  char *out = malloc(count * record), *in = calloc(count, record), byte;
  int fd = -1, ids[count], i, status = -1;
  for (i = 0; i < count * record; ++i) out[i] = (char)(i * 7 + i / 1000);
  EXPECT(EAF_Open(path_of("many"), EAF_RW, &fd) == EAF_OK);
  for (i = 0; i < count; ++i)
    EXPECT(EAF_Awrite(fd, (double)i * record, out + i * record, record, &ids[i]) == EAF_OK);
  for (i = count; i-- > 0;) EXPECT(EAF_Wait(fd, ids[i]) == EAF_OK);
  for (i = 0; i < count; ++i)
    EXPECT(EAF_Aread(fd, (double)i * record, in + i * record, record, &ids[i]) == EAF_OK);
  do EXPECT(EAF_Probe(ids[3], &status) == EAF_OK);
  while (status != 0);
  for (i = 0; i < count; ++i) EXPECT(EAF_Wait(fd, ids[i]) == EAF_OK);
  EXPECT(memcmp(in, out, count * record) == 0);
  EXPECT(EAF_Wait(fd, ids[0]) != EAF_OK && EAF_Probe(ids[0], &status) != EAF_OK);
  /* The wait returns the error of a request. */
  EXPECT(EAF_Aread(fd, (double)count * record - 1, in, 2, &ids[0]) == EAF_OK);
  i = EAF_Wait(fd, ids[0]);
  EXPECT(i != EAF_OK && EAF_Eof(i) == 0);
  /* Errors name the file of the request, which may be closed. */
  EXPECT(EAF_Aread(fd, (double)count * record - 1, in, 2, &ids[0]) == EAF_OK);
  EXPECT(EAF_Wait(fd + 1, ids[0]) != EAF_OK && strstr(oc_pario_last_error(), path_of("many")) != NULL);
  EXPECT(EAF_Close(fd) == EAF_OK && EAF_Eof(EAF_Wait(fd, ids[0])) == 0);
  EXPECT(strstr(oc_pario_last_error(), path_of("many")) != NULL);
  EXPECT(EAF_Open(path_of("many"), EAF_RW, &fd) == EAF_OK);
  EXPECT(EAF_Aread(fd, 0, &byte, 1, &ids[0]) == EAF_OK && EAF_Close(fd) == EAF_OK);
  EXPECT(EAF_Wait(fd, ids[0]) == EAF_OK && byte == out[0]);
  EXPECT(EAF_Delete(path_of("many")) == EAF_OK);
  free(out);
  free(in);
}

static void errors(void) {
  char message[80], buffer[16] = "", type[16] = "";
  long megabytes = -1;
  int64_t free_bytes = -1;
  double length;
  int fd = -1, code, id;
  EXPECT(EAF_Open(path_of("no/such/file"), EAF_RW, &fd) != EAF_OK);
  EXPECT(EAF_Open(path_of("nothing"), EAF_R, &fd) != EAF_OK);
  EXPECT(EAF_Open(path_of("errors"), -7, &fd) != EAF_OK);
  EXPECT(EAF_Open(NULL, EAF_RW, &fd) != EAF_OK && EAF_Delete("") == EAF_OK);
  EXPECT(EAF_Open(path_of("errors"), EAF_RW, &fd) == EAF_OK);
  EXPECT(EAF_Write(fd, 0, "0123456789", 10) == EAF_OK);
  code = EAF_Read(fd, 4, buffer, 10);
  EXPECT(code != EAF_OK && EAF_Eof(code) == 0 && memcmp(buffer, "456789", 6) == 0);
  EAF_Errmsg(code, message);
  EXPECT(strstr(message, "end of") != NULL && strlen(message) < 80);
  EXPECT(EAF_Eof(EAF_OK) != 0);
  EXPECT(EAF_Close(-1) != EAF_OK); /* the last failure now */
  EAF_Errmsg(code, message);
  EXPECT(strcmp(message, "end of the file") == 0);
  for (code = -10020; code <= -10001; ++code) {
    EAF_Errmsg(code, message);
    EXPECT(message[0] != 0);
  }
  EAF_Errmsg(-1990, message); /* of ELIO */
  EXPECT(strcmp(message, "a file could not be opened") == 0);
  EAF_Errmsg(-77777, message);
  EXPECT(strcmp(message, "") == 0);
  EXPECT(EAF_Write(fd, 0.5, buffer, 1) != EAF_OK && EAF_Read(fd, -1, buffer, 1) != EAF_OK);
  EXPECT(EAF_Aread(fd, 0.5, buffer, 1, &id) != EAF_OK && EAF_Truncate(fd, -3) != EAF_OK);
  EXPECT(EAF_Write(fd + 99, 0, buffer, 1) != EAF_OK && EAF_Length(-1, &length) != EAF_OK);
  EXPECT(EAF_Stat(directory, &megabytes, type, sizeof type) == EAF_OK && strcmp(type, "UFS") == 0);
  EXPECT(oc_eaf_stat(directory, &free_bytes, NULL, 0) == OC_OK);
  /* Within a factor of two, whatever others write meanwhile. */
  EXPECT(megabytes > free_bytes >> 21 && megabytes < free_bytes >> 19);
  EXPECT(EAF_Stat(path_of("errors"), &megabytes, type, sizeof type) == EAF_OK);
  EXPECT(EAF_Stat("/no/such/directory/", &megabytes, type, sizeof type) != EAF_OK);
  EAF_Print_stats(fd);
  EAF_Print_stats(fd + 99);
  EXPECT(EAF_Close(fd) == EAF_OK && EAF_Delete(path_of("errors")) == EAF_OK);
}

/* What the source of the original allows without documentation: a size in megabytes in place of the type, the
 * number that stands for no request, and a file that is opened twice. */
static void habits(void) {
  double value = 3.5, found = 0;
  int fd = -1, again = -1, status = 7;
  EXPECT(EAF_Open(path_of("memory"), 10, &fd) == EAF_OK && EAF_Write(fd, 8, &value, 8) == EAF_OK);
  EXPECT(EAF_Wait(fd, CHEMIO_DONE) == EAF_OK && EAF_Probe(CHEMIO_DONE, &status) == EAF_OK && status == 0);
  EXPECT(EAF_Open(path_of("memory"), EAF_RW, &again) == EAF_OK);
  EXPECT(EAF_Read(again, 8, &found, 8) == EAF_OK && found == value);
  value = 4.5;
  EXPECT(EAF_Write(fd, 8, &value, 8) == EAF_OK && EAF_Read(again, 8, &found, 8) == EAF_OK && found == value);
  EXPECT(EAF_Close(fd) == EAF_OK && EAF_Close(again) == EAF_OK && EAF_Delete(path_of("memory")) == EAF_OK);
}

/* What EAF_Print_stats prints for a file whose calls are all known. */
static void statistics(void) {
  char text[2000] = "", *calls, *data;
  double value = 1, values[20];
  int fd = -1, id = -1, numbers[5], stdout_copy, printed;
  size_t length;
  EXPECT(EAF_Open(path_of("stats"), EAF_RW, &fd) == EAF_OK);
  EXPECT(EAF_Write(fd, 0, &value, 8) == EAF_OK && EAF_Write(fd, 8, &value, 8) == EAF_OK);
  EXPECT(EAF_Write(fd, 16, &value, 8) == EAF_OK && EAF_Read(fd, 8, &value, 8) == EAF_OK);
  EXPECT(EAF_Awrite(fd, 24, &value, 8, &id) == EAF_OK && EAF_Wait(fd, id) == EAF_OK);
  EXPECT(EAF_Aread(fd, 0, &value, 4, &id) == EAF_OK && EAF_Wait(fd, id) == EAF_OK);
  /* A file that does not exist cannot be moved. */
  EXPECT(EAF_Read(fd, 28, values, 100) != EAF_OK && EAF_Read(fd, -1, values, 100) != EAF_OK);
  EXPECT(EAF_Aread(fd, 30, values, 100, &id) == EAF_OK && EAF_Wait(fd, id) != EAF_OK);
  EXPECT(EAF_Write(fd, 32, NULL, 100) != EAF_OK);
  fflush(stdout);
  stdout_copy = dup(1);
  printed = open(path_of("printed"), O_RDWR | O_CREAT | O_TRUNC, 0600);
  dup2(printed, 1);
  EAF_Print_stats(fd);
  dup2(stdout_copy, 1);
  close(stdout_copy);
  lseek(printed, 0, SEEK_SET);
  length = (size_t)read(printed, text, sizeof text - 1);
  text[length < sizeof text ? length : 0] = 0;
  close(printed);
  calls = strstr(text, "calls:");
  data = strstr(text, "data(b):");
  EXPECT(strstr(text, "size=32 bytes") != NULL && calls != NULL && data != NULL);
  if (calls != NULL)
    EXPECT(sscanf(calls, "calls: %d %d %d %d %d", &numbers[0], &numbers[1], &numbers[2], &numbers[3],
                  &numbers[4]) == 5 &&
           numbers[0] == 4 && numbers[1] == 2 && numbers[2] == 1 && numbers[3] == 2 && numbers[4] == 3);
  if (data != NULL) {
    double moved[4];
    EXPECT(sscanf(data, "data(b): %lf %lf %lf %lf", &moved[0], &moved[1], &moved[2], &moved[3]) == 4 &&
           moved[0] == 24 && moved[1] == 12 && moved[2] == 8 && moved[3] == 6);
    data = strstr(data, "rate(mb/s):");
    EXPECT(data != NULL &&
           sscanf(data, "rate(mb/s): %lf %lf %lf* %lf*", &moved[0], &moved[1], &moved[2], &moved[3]) == 4 &&
           moved[0] > 0 && moved[1] > 0 && moved[2] > 0 && moved[3] > 0);
  }
  EXPECT(EAF_Close(fd) == EAF_OK && EAF_Delete(path_of("stats")) == EAF_OK);
}

/* A file that may not grow: codes, also of requests that were begun. */
static void no_space(void) {
  const struct rlimit small = {1 << 20, RLIM_INFINITY};
  struct rlimit before;
  char *data = calloc(2, 1 << 20), message[80];
  int fd = -1, id = -1, code;
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &before);
  EXPECT(EAF_Open(path_of("limit"), EAF_RW, &fd) == EAF_OK);
  setrlimit(RLIMIT_FSIZE, &small);
  code = EAF_Awrite(fd, 0, data, 2 << 20, &id);
  if (code == EAF_OK) code = EAF_Wait(fd, id);
  EXPECT(code != EAF_OK && EAF_Eof(code) != 0);
  EAF_Errmsg(code, message);
  EXPECT(strlen(message) > 5);
  EXPECT(EAF_Write(fd, 0, data, 2 << 20) != EAF_OK);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT(EAF_Write(fd, 0, data, 4096) == EAF_OK && EAF_Close(fd) == EAF_OK);
  EXPECT(EAF_Delete(path_of("limit")) == EAF_OK);
  free(data);
}

/* A file that this process has no right to write, in a directory where it may make none. */
static void only_to_read(void) {
  const uid_t user = geteuid(), nobody = 65534;
  double value = 2.5, found = 0, length = 0;
  char name[1100];
  int fd = -1, again = -1, other = -1;
  snprintf(name, sizeof name, "%s", path_of("kept"));
  EXPECT(mkdir(name, 0755) == 0);
  strcat(name, "/file");
  EXPECT(EAF_Open(name, EAF_RW, &fd) == EAF_OK && EAF_Write(fd, 8, &value, 8) == EAF_OK);
  EXPECT(EAF_Close(fd) == EAF_OK && chmod(name, 0444) == 0 && chmod(path_of("kept"), 0555) == 0);
  EXPECT(chmod(directory, 0755) == 0);
  if (user == 0) EXPECT(seteuid(nobody) == 0); /* rights are nothing to the superuser */
  EXPECT(EAF_Open(name, EAF_RW, &fd) != EAF_OK && EAF_Open(name, EAF_W, &fd) != EAF_OK);
  EXPECT(EAF_Open(name, EAF_R, &fd) == EAF_OK && EAF_Open(name, EAF_R, &again) == EAF_OK);
  EXPECT(EAF_Read(fd, 8, &found, 8) == EAF_OK && found == value);
  EXPECT(EAF_Length(again, &length) == EAF_OK && length == 16 && EAF_Write(again, 0, &value, 8) != EAF_OK);
  if (user == 0) EXPECT(seteuid(user) == 0);
  EXPECT(EAF_Open(name, EAF_RW, &other) != EAF_OK); /* while it is open to be read only */
  EXPECT(strstr(oc_pario_last_error(), "close it first") != NULL);
  EXPECT(EAF_Close(fd) == EAF_OK && EAF_Close(again) == EAF_OK);
  EXPECT(chmod(path_of("kept"), 0755) == 0 && chmod(name, 0644) == 0);
  EXPECT(EAF_Open(name, EAF_RW, &fd) == EAF_OK && EAF_Write(fd, 0, &value, 8) == EAF_OK &&
         EAF_Close(fd) == EAF_OK);
}

/* No function throws when memory runs out: a Fortran text longer than any memory. */
static void no_memory(void) {
  const int64_t type = EAF_RW;
  int64_t fd = -1;
  EXPECT(eaf_open_("name", &type, &fd, PTRDIFF_MAX) == -10004); /* as others that cannot be opened */
  EXPECT(strcmp(oc_pario_last_error(), "out of memory") == 0);
}

/* Names of any length that the file system allows. */
static void long_names(void) {
  char name[long_name_bytes];
  int fd = -1;
  make_long_name(directory, name);
  EXPECT(EAF_Open(name, EAF_RW, &fd) == EAF_OK);
  EXPECT(EAF_Write(fd, 0, "x", 1) == EAF_OK && EAF_Close(fd) == EAF_OK && EAF_Delete(name) == EAF_OK);
}

int main(void) {
  char command[200];
  if (!mkdtemp(directory)) return 1;
  writes_reads_and_opens_again();
  requests();
  errors();
  habits();
  statistics();
  no_space();
  only_to_read();
  no_memory();
  long_names();
  snprintf(command, sizeof command, "rm -rf %s", directory);
  if (system(command) != 0) return 1;
  printf("%d failed\n", failures);
  return failures != 0;
}
