/* A file of records through the C interface; the place is a directory. The counterpart of _eaf_peer.f90: same
 * order of records, same check of every record. */
#define _POSIX_C_SOURCE 200112L
#include "_eaf_program.h"
#include "_eaf_records.h"

static int file;

static void open_file(const char* place) {
  oc_eaf_options options = {.size = sizeof options, .scratch = place, .keep = 1};
  check(oc_eaf_open("records", &options, &file));
}

static void write_record(int64_t offset, const double* record, int64_t bytes) {
  check(oc_eaf_write(file, offset, record, bytes));
}

static void read_record(int64_t offset, double* record, int64_t bytes) {
  check(oc_eaf_read(file, offset, record, bytes, NULL));
}

static void close_file(void) {
  check(oc_eaf_close(file));
}
