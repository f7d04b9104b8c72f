/* A file of records by the classic names of EAF; the place is its name. */
#define _POSIX_C_SOURCE 200112L
#include <eaf.h>

#include "_eaf_records.h"

static int file;

static void check(int code, const char* what) {
  char text[80] = "";
  if (code == 0) return;
  EAF_Errmsg(code, text);
  fprintf(stderr, "%s: %s\n", what, text);
  exit(1);
}

static void open_file(const char* place) {
  check(EAF_Open(place, EAF_RW, &file), "EAF_Open");
}

static void write_record(int64_t offset, const double* record, int64_t bytes) {
  check(EAF_Write(file, (double)offset, record, (size_t)bytes), "EAF_Write");
}

static void read_record(int64_t offset, double* record, int64_t bytes) {
  check(EAF_Read(file, (double)offset, record, (size_t)bytes), "EAF_Read");
}

static void close_file(void) {
  check(EAF_Close(file), "EAF_Close");
}
