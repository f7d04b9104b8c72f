/* Exclusive and shared files, and elementary I/O, by their classic names, with the real Global Arrays. Built
 * against the library of the original and against ours; -DORIGINAL leaves out what only ours does right. The
 * argument is a directory. */
#include <eaf.h>
#include <elio.h>
#include <sf.h>
#include <stdlib.h>
#include <string.h>

#include "ga_program.h"
#include "preloaded.h"

static char* path_of(const char* name) {
  static char path[1200];
  snprintf(path, sizeof path, "%s/%s%d", directory, name, me);
  return path;
}

enum { count = 5000, bytes = count * 8 };
static double out[count], in[count];

static int is(double first) {
  int i, right = 0;
  for (i = 0; i < count; ++i) right += in[i] == first + i;
  memset(in, 0, sizeof in);
  return right == count;
}

static void set(double first) {
  int i;
  for (i = 0; i < count; ++i) out[i] = first + i;
}

static void exclusive_files(void) {
  int file = -1, requests[2], code;
  double length = -1, *other = malloc(bytes);
  char text[80] = "";
  EXPECT(EAF_Open(path_of("eaf"), EAF_RW, &file) == 0);
  set(1);
  EXPECT(EAF_Write(file, 0, out, bytes) == 0);
  set(7);
  EXPECT(EAF_Write(file, 3.0 * bytes, out, bytes) == 0);
  EXPECT(EAF_Length(file, &length) == 0 && length == 4.0 * bytes);
  EXPECT(EAF_Read(file, 0, in, bytes) == 0 && is(1));
  EXPECT(EAF_Read(file, 3.0 * bytes, in, bytes) == 0 && is(7));
  EXPECT(EAF_Read(file, 1.0 * bytes, in, 8) == 0 && in[0] == 0); /* never written */

  set(20);
  EXPECT(EAF_Awrite(file, 1.0 * bytes, out, bytes, &requests[0]) == 0 && EAF_Wait(file, requests[0]) == 0);
  EXPECT(EAF_Aread(file, 1.0 * bytes, in, bytes, &requests[0]) == 0);
  EXPECT(EAF_Aread(file, 3.0 * bytes, other, bytes, &requests[1]) == 0);
  EXPECT(EAF_Wait(file, requests[1]) == 0 && EAF_Wait(file, requests[0]) == 0);
  EXPECT(is(20) && other[1] == 8);

  code = EAF_Read(file, 4.0 * bytes, in, 8);
  EXPECT(code != 0);
#ifndef ORIGINAL
  EXPECT(EAF_Eof(code) == 0);
  EAF_Errmsg(code, text);
  EXPECT(strstr(text, "end of") != NULL);
  EXPECT(EAF_Aread(file, 4.0 * bytes, in, 8, &requests[0]) == 0);
  EXPECT(EAF_Eof(EAF_Wait(file, requests[0])) == 0);
  {
    int status = 7;
    EXPECT(EAF_Aread(file, 0, in, bytes, &requests[0]) == 0);
    do EXPECT(EAF_Probe(requests[0], &status) == 0);
    while (status != 0);
    EXPECT(EAF_Wait(file, requests[0]) == 0 && is(1));
    EXPECT(EAF_Wait(file, requests[0]) != 0);
  }
#endif
  EXPECT(EAF_Truncate(file, 100.0) == 0 && EAF_Length(file, &length) == 0 && length == 100);
  EXPECT(EAF_Close(file) == 0);
  EXPECT(EAF_Open(path_of("eaf"), EAF_R, &file) == 0 && EAF_Read(file, 0, in, 96) == 0 && in[11] == 12);
  EXPECT(EAF_Close(file) == 0 && EAF_Delete(path_of("eaf")) == 0);
  EXPECT(EAF_Open(path_of("eaf"), EAF_R, &file) != 0);
  EXPECT(EAF_Open("/no/such/directory/eaf", EAF_RW, &file) != 0);
  EAF_Errmsg(0, text);
  EXPECT(strncmp(text, "OK", 2) == 0);
  free(other);
}

static void elementary_files(void) {
  Fd_t file = elio_open(path_of("elio"), ELIO_RW, ELIO_PRIVATE);
  io_request_t requests[2];
  double length = -1;
  char name[1200];
  int status = 7;
  EXPECT(file != NULL && strcmp(file->name, path_of("elio")) == 0);
  set(3);
  EXPECT(elio_write(file, 8, out, bytes) == bytes && elio_read(file, 8, in, bytes) == bytes && is(3));
  EXPECT(elio_read(file, bytes, in, 100) < 0 &&
         in[0] == 3 + count - 1); /* what is there, and the end's code */
  set(40);
  EXPECT(elio_awrite(file, 0, out, bytes, &requests[0]) == ELIO_OK && elio_wait(&requests[0]) == ELIO_OK);
  EXPECT(elio_aread(file, bytes / 2, (char*)in + bytes / 2, bytes / 2, &requests[0]) == ELIO_OK);
  EXPECT(elio_aread(file, 0, in, bytes / 2, &requests[1]) == ELIO_OK);
  do EXPECT(elio_probe(&requests[0], &status) == ELIO_OK);
  while (status == ELIO_PENDING);
  EXPECT(elio_wait(&requests[1]) == ELIO_OK && elio_wait(&requests[0]) == ELIO_OK && is(40));
  EXPECT(requests[0] == ELIO_DONE && requests[1] == ELIO_DONE);
  EXPECT(elio_length(file, &length) == ELIO_OK && length == bytes + 8);
  EXPECT(elio_truncate(file, 16) == ELIO_OK && elio_length(file, &length) == ELIO_OK && length == 16);
  EXPECT(elio_fsync(file) == ELIO_OK && elio_close(file) == ELIO_OK);
  EXPECT(elio_dirname(path_of("elio"), name, sizeof name) == ELIO_OK && strcmp(name, directory) == 0);
  EXPECT(elio_delete(path_of("elio")) == ELIO_OK);
  EXPECT(elio_delete(path_of("elio")) == ELIO_OK); /* nothing to do */
  EXPECT(elio_open("/no/such/directory/elio", ELIO_RW, ELIO_PRIVATE) == NULL);
}

static void shared_files(void) {
  int file = -1, requests[2], next = (me + 1) % processes;
  char name[1200];
  snprintf(name, sizeof name, "%s/shared", directory);
  EXPECT(SF_Create(name, 1e9, 1e8, bytes, &file) == 0);
  set(100 * me);
  EXPECT(SF_Write(file, 1.0 * me * bytes, bytes, (char*)out, &requests[0]) == 0 &&
         SF_Wait(&requests[0]) == 0);
  GA_Sync();
  memset(in, 0, sizeof in);
  EXPECT(SF_Read(file, 1.0 * next * bytes, bytes / 2, (char*)in, &requests[0]) == 0);
  EXPECT(SF_Read(file, 1.0 * next * bytes + bytes / 2, bytes / 2, (char*)in + bytes / 2, &requests[1]) == 0);
  EXPECT(SF_Waitall(requests, 2) == 0 && is(100 * next));
  GA_Sync();
  EXPECT(SF_Destroy(file) == 0);
#ifndef ORIGINAL
  /* A file cannot grow beyond its hard limit. */
  EXPECT(SF_Create(name, 1000, 1000, 100, &file) == 0);
  EXPECT(SF_Write(file, 0, 1000, (char*)out, &requests[0]) == 0 && SF_Wait(&requests[0]) == 0);
  EXPECT(SF_Write(file, 1000, 1000, (char*)out, &requests[0]) != 0 || SF_Wait(&requests[0]) != 0);
  GA_Sync();
  EXPECT(SF_Destroy(me == 0 ? 4711 : file) != 0); /* at all, though one has given a wrong number */
  EXPECT(SF_Destroy(file) == 0 && SF_Destroy(file) != 0);
  EXPECT(SF_Create((char*)"/no/such/directory/shared", 1000, 1000, 100, &file) != 0);
#endif
}

/* A shared file of some processes: those of the default group of Global Arrays. The others are not involved.
 * */
static void shared_file_of_a_group(void) {
  int list[64], members = 0, i, group, file = -1, of_all = -1, request;
  char name[1200];
#ifndef ORIGINAL
  snprintf(name, sizeof name, "%s/all", directory);
  EXPECT(SF_Create(name, 1e9, 1e8, bytes, &of_all) == 0);
#endif
  for (i = 0; i < processes; i += 2) list[members++] = i;
  group = GA_Pgroup_create(list, members);
  if (me % 2 == 0) {
    int its_me, next;
    GA_Pgroup_set_default(group);
    its_me = GA_Nodeid();
    next = (its_me + 1) % members;
    snprintf(name, sizeof name, "%s/group", directory);
    EXPECT(SF_Create(name, 1e9, 1e8, bytes, &file) == 0);
    set(100 * its_me);
    EXPECT(SF_Write(file, 1.0 * its_me * bytes, bytes, (char*)out, &request) == 0 && SF_Wait(&request) == 0);
    GA_Sync();
    EXPECT(SF_Read(file, 1.0 * next * bytes, bytes, (char*)in, &request) == 0 && SF_Wait(&request) == 0);
    EXPECT(is(100 * next));
    GA_Sync();
    EXPECT(SF_Destroy(file) == 0);
#ifndef ORIGINAL
    EXPECT(processes == 1 || SF_Destroy(of_all) != 0); /* the others would be waited for */
#endif
    GA_Pgroup_set_default(GA_Pgroup_get_world());
  }
  GA_Sync();
  EXPECT(GA_Pgroup_destroy(group));
#ifndef ORIGINAL
  EXPECT(SF_Destroy(of_all) == 0);
#else
  (void)of_all;
#endif
}

#ifdef PRELOADED
/* All names come from our library, although the program is linked to another one. */
static void names_are_ours(void) {
#define NAME(name) EXPECT(is_ours((void*)name));
  EAF_SF_NAMES(NAME)
#undef NAME
}
#endif

int main(int argument_count, char** arguments) {
  begin(argument_count, arguments);
#ifdef PRELOADED
  names_are_ours();
#endif
  exclusive_files();
  elementary_files();
  shared_files();
  shared_file_of_a_group();
  return end();
}
