/* The disk resident arrays of Global Arrays for bench dra: takes the commands of _dra_worker.py (see there)
 * from the standard input of rank 0 and answers in the same way. Arguments: directory, file of the section,
 * side of the section, side of the array, side of the typical request given as a hint, number of files,
 * number of processes that do I/O (0 files: its default). */
#define _GNU_SOURCE
#include <dra.h>
#include <ga.h>
#include <macdecls.h>

#include "_dra_program.h"

static int source, target, disk;
static long hint;
static char path[512];

static void check(int failed, const char* what) {
  if (failed) GA_Error((char*)what, failed);
}

static int doubles(int rows, int columns, char* name) {
  int shape[2] = {rows, columns}, chunk[2] = {-1, -1}, array;
  array = NGA_Create(C_DBL, 2, shape, name, chunk);
  check(!array, "NGA_Create");
  return array;
}

/* Calls `row` for every row of the own patch: its index, its first column, its length, its memory. */
static int each_row(int array, int (*row)(int fd, long at, int length, double* memory)) {
  int low[2], high[2], stride, i, good = 1, fd = open(source_file, O_RDONLY);
  double* memory;
  check(fd < 0, source_file);
  NGA_Distribution(array, rank, low, high);
  if (low[0] >= 0 && high[0] >= low[0]) {
    NGA_Access(array, low, high, &memory, &stride);
    for (i = low[0]; i <= high[0] && good; ++i)
      good = row(fd, (long)i * section + low[1], high[1] - low[1] + 1, memory + (long)(i - low[0]) * stride);
    NGA_Release_update(array, low, high);
  }
  close(fd);
  GA_Igop(&good, 1, "min");
  return good;
}

static int take(int fd, long at, int length, double* memory) {
  return pread(fd, memory, 8 * (size_t)length, 8 * at) == 8 * (ssize_t)length;
}

static int same(int fd, long at, int length, double* memory) {
  static double* expected;
  if (!expected) expected = malloc(8 * (size_t)section);
  return take(fd, at, length, expected) && memcmp(expected, memory, 8 * (size_t)length) == 0;
}

static void move(int writing, int array, int rows, int columns, long row, long column) {
  int low[2] = {0, 0}, high[2] = {rows - 1, columns - 1}, request;
  dra_size_t disk_low[2] = {row, column}, disk_high[2] = {row + rows - 1, column + columns - 1};
  check(writing ? NDRA_Write_section(0, array, low, high, disk, disk_low, disk_high, &request)
                : NDRA_Read_section(0, array, low, high, disk, disk_low, disk_high, &request),
        "transfer");
  check(DRA_Wait(request), "DRA_Wait");
}

static void create(void) {
  dra_size_t shape[2] = {array_side, array_side}, typical[2] = {hint, hint};
  check(NDRA_Create(C_DBL, 2, shape, "array", path, DRA_RW, typical, &disk), "NDRA_Create");
}

/* The slice of row or column `index`, `length` long. */
static int slice(int along_rows, long index, int length) {
  int low[2] = {0, 0}, high[2] = {0, 0}, stride = 1, array, good = 1;
  double* values = calloc((size_t)length, 8);
  array = along_rows ? doubles(length, 1, "slice") : doubles(1, length, "slice");
  GA_Sync();
  if (rank == 0) printf("%.9f ", now());
  along_rows ? move(0, array, length, 1, 0, index) : move(0, array, 1, length, index, 0);
  GA_Sync();
  if (rank == 0) printf("%.9f ", now());
  if (rank == 0) {
    high[along_rows ? 0 : 1] = length - 1;
    stride = along_rows ? 1 : length;
    NGA_Get(array, low, high, values, &stride);
    good = is_slice(values, along_rows, index, length);
  }
  GA_Igop(&good, 1, "min");
  GA_Destroy(array);
  free(values);
  return good;
}

static void compute(double seconds) {
  volatile double sum = 0;
  double end = now() + seconds;
  while (now() < end) {
    int i;
    for (i = 0; i < 1000; ++i) sum += 1e-3 * i;
  }
}

/* Writes the section asynchronously; the times are those of the call, or, with computation, of both together.
 * The first processes compute, the others sleep as long. */
static void begin(double seconds, int computing) {
  int request, low[2] = {0, 0}, high[2] = {section - 1, section - 1};
  dra_size_t disk_low[2] = {0, 0}, disk_high[2] = {section - 1, section - 1};
  double start, begun;
  create();
  GA_Sync();
  start = now();
  check(NDRA_Write_section(0, source, low, high, disk, disk_low, disk_high, &request), "NDRA_Write_section");
  begun = now();
  if (seconds > 0 && rank < computing) compute(seconds);
  if (seconds > 0 && rank >= computing) usleep((useconds_t)(1e6 * seconds));
  check(DRA_Wait(request), "DRA_Wait");
  GA_Sync();
  if (rank == 0) printf("%.9f %.9f 1\n", start, seconds > 0 ? now() : begun);
  check(DRA_Delete(disk), "DRA_Delete");
}

static void obey(char* line) {
  char command[16] = "", axis[16] = "";
  long row = 0, column = 0;
  double start;
  int i;
  if (sscanf(line, "%15s", command) != 1) return;
  if (strcmp(command, "write") == 0 || strcmp(command, "rewrite") == 0 || strcmp(command, "fill") == 0) {
    int parts = strcmp(command, "fill") == 0 ? 4 : 1;
    sscanf(line, "%*s %ld %ld", &row, &column);
    GA_Sync();
    start = now();
    if (strcmp(command, "rewrite") == 0)
      check(DRA_Open(path, DRA_RW, &disk), "DRA_Open");
    else
      create();
    for (i = 0; i < parts; ++i)
      move(1, source, section, section, parts == 4 ? i / 2 * section : row,
           parts == 4 ? i % 2 * section : column);
    check(DRA_Close(disk), "DRA_Close");
    GA_Sync();
    sync_files();
    if (rank == 0) printf("%.9f %.9f 1\n", start, now());
  } else if (strcmp(command, "begin") == 0) { /* until the write has begun */
    begin(0, 0);
  } else if (strcmp(command, "overlap") == 0) { /* with so many seconds of computation of some processes */
    sscanf(line, "%*s %lf %d", &start, &i);
    begin(start, i);
  } else if (strcmp(command, "read") == 0) {
    sscanf(line, "%*s %ld %ld", &row, &column);
    GA_Zero(target);
    GA_Sync();
    start = now();
    check(DRA_Open(path, DRA_R, &disk), "DRA_Open");
    move(0, target, section, section, row, column);
    check(DRA_Close(disk), "DRA_Close");
    GA_Sync();
    if (rank == 0) printf("%.9f %.9f ", start, now());
    i = each_row(target, same);
    if (rank == 0) printf("%d\n", i);
  } else if (strcmp(command, "open") == 0) {
    check(DRA_Open(path, DRA_R, &disk), "DRA_Open");
    if (rank == 0) printf("0 0 1\n");
  } else if (strcmp(command, "slice") == 0) {
    sscanf(line, "%*s %15s %ld %ld", axis, &row, &column);
    i = slice(strcmp(axis, "tall") == 0, row, (int)column);
    if (rank == 0) printf("%d\n", i);
  } else if (strcmp(command, "close") == 0) {
    check(DRA_Close(disk), "DRA_Close");
    if (rank == 0) printf("0 0 1\n");
  }
  fflush(stdout);
}

int main(int count, char** arguments) {
  char line[256] = "";
  if (count != 8) return 2;
  MPI_Init(&count, &arguments);
  GA_Initialize();
  rank = GA_Nodeid();
  directory = arguments[1];
  source_file = arguments[2];
  section = atoi(arguments[3]);
  array_side = atol(arguments[4]);
  hint = atol(arguments[5]);
  snprintf(path, sizeof path, "%s/array", directory);
  MA_init(MT_DBL, 8000000, 8000000);
  check(DRA_Init(4, 16e9, 64e9, 512e6), "DRA_Init");
  if (atoi(arguments[6]) > 0) DRA_Set_default_config(atoi(arguments[6]), atoi(arguments[7]));
  source = doubles(section, section, "source");
  target = doubles(section, section, "target");
  check(!each_row(source, take), "read the section");
  if (rank == 0) printf("0 0 1\n");
  fflush(stdout);
  for (next(line, sizeof line, 200); strncmp(line, "quit", 4) != 0; next(line, sizeof line, 200)) obey(line);
  DRA_Terminate();
  GA_Terminate();
  MPI_Finalize();
  return 0;
}
