/* Disk resident arrays by their classic names, with memory of the real Global Arrays. Built against the
 * library of the original and against ours; -DORIGINAL leaves out what only ours does right. The argument is
 * a directory. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dra.h"
#include "ga_program.h"
#include "preloaded.h"

#ifndef ORIGINAL
extern const char* oc_pario_last_error(void);
#endif

static char* path_of(const char* name) {
  static char path[1200];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

enum { rows = 60, columns = 44 };
static int ga_dims[2] = {rows, columns};
static dra_size_t dra_dims[2] = {rows, columns}, unknown[2] = {-1, -1};

static double value_at(int i, int j) {
  return 1000.0 * i + j;
}

static int created(const char* name) {
  int g_a = NGA_Create(C_DBL, 2, ga_dims, (char*)name, NULL);
  GA_Zero(g_a);
  return g_a;
}

/* Fills an array, each process its own rows. */
static void fill(int g_a) {
  double row[columns];
  int i, j, ld = columns;
  for (i = me; i < rows; i += processes) {
    int lo[2] = {i, 0}, hi[2] = {i, columns - 1};
    for (j = 0; j < columns; ++j) row[j] = value_at(i, j);
    NGA_Put(g_a, lo, hi, row, &ld);
  }
  GA_Sync();
}

static double element(int g_a, int i, int j) {
  int lo[2] = {i, j}, ld = 1;
  double value = -1;
  NGA_Get(g_a, lo, lo, &value, &ld);
  return value;
}

static void whole_arrays(void) {
  int g_a = created("a"), g_b = created("b"), d_a = 0, request = 0, type = 0, axes = 0, status = 7, i;
  dra_size_t its_dims[7] = {0};
  char name[80] = "", filename[1024] = "";
  fill(g_a);
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "matrix", path_of("whole"), DRA_RW, unknown, &d_a) == 0);
  EXPECT(NDRA_Write(g_a, d_a, &request) == 0);
  EXPECT(DRA_Wait(request) == 0);
  EXPECT(NDRA_Read(g_b, d_a, &request) == 0);
#ifndef ORIGINAL
  do EXPECT(DRA_Probe(request, &status) == 0);
  while (status != 0);
#endif
  EXPECT(DRA_Wait(request) == 0);
  for (i = me; i < rows; i += processes)
    EXPECT(element(g_b, i, (7 * i) % columns) == value_at(i, (7 * i) % columns));
  EXPECT(NDRA_Inquire(d_a, &type, &axes, its_dims, name, filename) == 0);
  EXPECT(type == C_DBL && axes == 2 && its_dims[0] == rows && its_dims[1] == columns);
  EXPECT(strcmp(name, "matrix") == 0 && strcmp(filename, path_of("whole")) == 0);
  EXPECT(DRA_Close(d_a) == 0);
  /* The next handle finds the data. */
  GA_Zero(g_b);
  EXPECT(DRA_Open(path_of("whole"), DRA_R, &d_a) == 0);
  EXPECT(NDRA_Read(g_b, d_a, &request) == 0 && DRA_Wait(request) == 0);
  EXPECT(element(g_b, 31, 13) == value_at(31, 13));
  GA_Sync();
#ifndef ORIGINAL
  EXPECT(NDRA_Write(g_a, d_a, &request) != 0 && strstr(oc_pario_last_error(), "to read only") != NULL);
#endif
  EXPECT(DRA_Close(d_a) == 0);
  EXPECT(DRA_Open(path_of("whole"), DRA_RW, &d_a) == 0 && DRA_Delete(d_a) == 0);
  GA_Destroy(g_a);
  GA_Destroy(g_b);
}

static void sections(void) {
  int g_a = created("a"), g_b = created("b"), d_a = 0, request = 0, other = 0, i, j;
  int glo[2] = {5, 7}, ghi[2] = {34, 40};
  dra_size_t dlo[2] = {20, 3}, dhi[2] = {49, 36}, typical[2] = {rows, 8};
  fill(g_a);
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "sections", path_of("sections"), DRA_RW, typical, &d_a) == 0);
  EXPECT(NDRA_Write_section(0, g_a, glo, ghi, d_a, dlo, dhi, &request) == 0 && DRA_Wait(request) == 0);
  EXPECT(NDRA_Read(g_b, d_a, &request) == 0 && DRA_Wait(request) == 0);
  for (i = me; i < rows; i += processes)
    for (j = 0; j < columns; j += 3) {
      int there = i >= 20 && i <= 49 && j >= 3 && j <= 36;
      double wanted = there ? value_at(i - 15, j + 4) : 0; /* what was never written is zero */
      EXPECT(element(g_b, i, j) == wanted);
    }
  GA_Sync();
  { /* Transposed: row i of the section on disk is column i of that in memory. */
    int rlo[2] = {10, 2}, rhi[2] = {43, 31};
    GA_Zero(g_b);
    EXPECT(NDRA_Read_section(1, g_b, rlo, rhi, d_a, dlo, dhi, &request) == 0 && DRA_Wait(request) == 0);
    for (i = me; i < 34; i += processes)
      for (j = 0; j < 30; j += 4) EXPECT(element(g_b, 10 + i, 2 + j) == value_at(5 + j, 7 + i));
    EXPECT(element(g_b, 9, 2) == 0);
    GA_Sync();
  }
  { /* Several at a time, waited for in another order. */
    int first_lo[2] = {0, 0}, first_hi[2] = {9, columns - 1}, second_lo[2] = {10, 0},
        second_hi[2] = {19, columns - 1};
    dra_size_t to_lo[2] = {0, 0}, to_hi[2] = {9, columns - 1}, next_lo[2] = {10, 0},
               next_hi[2] = {19, columns - 1};
    EXPECT(NDRA_Write_section(0, g_a, first_lo, first_hi, d_a, next_lo, next_hi, &request) == 0);
    EXPECT(NDRA_Write_section(0, g_a, second_lo, second_hi, d_a, to_lo, to_hi, &other) == 0);
    EXPECT(DRA_Wait(other) == 0 && DRA_Wait(request) == 0);
    EXPECT(NDRA_Read(g_b, d_a, &request) == 0 && DRA_Wait(request) == 0);
    EXPECT(element(g_b, 3, 5) == value_at(13, 5) && element(g_b, 13, 5) == value_at(3, 5));
    GA_Sync();
  }
  EXPECT(DRA_Delete(d_a) == 0);
  GA_Destroy(g_a);
  GA_Destroy(g_b);
}

#ifdef PRELOADED
/* All names come from our library, although the program is linked to another one. */
static void names_are_ours(void) {
#define NAME(name) EXPECT(is_ours((void*)name));
  DRA_NAMES(NAME)
  EXPECT(is_ours((void*)oc_pario_last_error));
#undef NAME
}
#endif

#ifndef ORIGINAL
/* The numbers of files and of I/O processes, which our arrays do not have. */
static void configured(void) {
  int g_a = created("a"), g_b = created("b"), d_a = 0, request = 0, i;
  struct stat found;
  fill(g_a);
  DRA_Set_default_config(3, 2);
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "c", path_of("configured"), DRA_RW, unknown, &d_a) == 0);
  EXPECT(NDRA_Write(g_a, d_a, &request) == 0 && DRA_Wait(request) == 0);
  EXPECT(NDRA_Read(g_b, d_a, &request) == 0 && DRA_Wait(request) == 0);
  for (i = me; i < rows; i += processes) EXPECT(element(g_b, i, 19) == value_at(i, 19));
  EXPECT(stat(path_of("configured"), &found) == 0 && S_ISDIR(found.st_mode)); /* as only ours is */
  GA_Sync();
  EXPECT(DRA_Delete(d_a) == 0);
  GA_Destroy(g_a);
  GA_Destroy(g_b);
}

static void a_created_array_is_zero(void) {
  int g_a = created("a"), d_a = 0, request = 0;
  fill(g_a);
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "one", path_of("again"), DRA_RW, unknown, &d_a) == 0);
  EXPECT(NDRA_Write(g_a, d_a, &request) == 0 && DRA_Wait(request) == 0 && DRA_Close(d_a) == 0);
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "two", path_of("again"), DRA_RW, unknown, &d_a) == 0);
  EXPECT(NDRA_Read(g_a, d_a, &request) == 0 && DRA_Wait(request) == 0);
  EXPECT(element(g_a, 20, 20) == 0);
  GA_Sync();
  EXPECT(DRA_Delete(d_a) == 0);
  GA_Destroy(g_a);
}

static void a_block_cyclic_array(void) {
  int g_a = GA_Create_handle(), g_b = created("b"), d_a = 0, request = 0, block[2] = {7, 5}, i;
  GA_Set_data(g_a, 2, ga_dims, C_DBL);
  GA_Set_block_cyclic(g_a, block);
  EXPECT(GA_Allocate(g_a));
  fill(g_a);
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "cyclic", path_of("cyclic"), DRA_RW, unknown, &d_a) == 0);
  EXPECT(NDRA_Write(g_a, d_a, &request) == 0 && DRA_Wait(request) == 0);
  EXPECT(NDRA_Read(g_b, d_a, &request) == 0 && DRA_Wait(request) == 0);
  for (i = me; i < rows; i += processes) EXPECT(element(g_b, i, i % columns) == value_at(i, i % columns));
  GA_Zero(g_a);
  EXPECT(NDRA_Read(g_a, d_a, &request) == 0 && DRA_Wait(request) == 0);
  EXPECT(element(g_a, 33, 22) == value_at(33, 22));
  GA_Sync();
  EXPECT(DRA_Delete(d_a) == 0);
  GA_Destroy(g_a);
  GA_Destroy(g_b);
}

/* All types, with one to seven axes. */
static void types_and_axes(void) {
  static const int types[] = {C_INT, C_LONG, C_LONGLONG, C_FLOAT, C_DBL, C_SCPL, C_DCPL};
  static const size_t bytes[] = {sizeof(int), sizeof(long), sizeof(long long), 4, 8, 8, 16};
  int axes, k, b;
  for (axes = 1; axes <= 7; ++axes) {
    int dims[7], lo[7] = {0}, hi[7], ld[7], g_a, g_b, d_a = 0, request = 0, count = 1, is = types[axes - 1];
    dra_size_t its_dims[7], none[7];
    size_t total;
    char *out, *in;
    for (k = 0; k < axes; ++k) {
      dims[k] = axes == 1 ? 50 : 3 + k % 3;
      its_dims[k] = dims[k];
      hi[k] = dims[k] - 1;
      none[k] = -1;
      count *= dims[k];
    }
    for (k = 0; k + 1 < axes; ++k) ld[k] = dims[k + 1];
    total = (size_t)count * bytes[axes - 1];
    out = malloc(total);
    in = calloc(total, 1);
    for (b = 0; b < (int)total; ++b) out[b] = (char)(b * 11 % 63);
    g_a = NGA_Create(is, axes, dims, "out", NULL);
    g_b = NGA_Create(is, axes, dims, "in", NULL);
    if (me == 0) NGA_Put(g_a, lo, hi, out, ld);
    GA_Sync();
    EXPECT(NDRA_Create(is, axes, its_dims, "axes", path_of("axes"), DRA_RW, none, &d_a) == 0);
    EXPECT(NDRA_Write(g_a, d_a, &request) == 0 && DRA_Wait(request) == 0);
    EXPECT(NDRA_Read(g_b, d_a, &request) == 0 && DRA_Wait(request) == 0);
    NGA_Get(g_b, lo, hi, in, ld);
    EXPECT(memcmp(in, out, total) == 0);
    GA_Sync();
    EXPECT(DRA_Delete(d_a) == 0);
    GA_Destroy(g_a);
    GA_Destroy(g_b);
    free(out);
    free(in);
  }
}

/* Two groups, each with an array of its own at the same time. */
static void groups(void) {
  int mine = me % 2, list[64], count = 0, i, group, g_a = 0, g_b = 0, d_a = 0, request = 0, its_me,
      its_processes;
  char name[16];
  if (processes < 2) return;
  for (i = mine; i < processes; i += 2) list[count++] = i;
  group = GA_Pgroup_create(list, count);
  GA_Pgroup_set_default(group);
  its_me = GA_Nodeid();
  its_processes = GA_Nnodes();
  EXPECT(its_processes == count && its_me == me / 2);
  /* In turns: windows that two groups allocate at the same time share a file in Open MPI 4.1. */
  for (i = 0; i < 2; ++i) {
    if (i == mine) g_a = created("a"), g_b = created("b");
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (i = its_me; i < rows; i += its_processes) {
    int lo[2] = {i, 0}, hi[2] = {i, columns - 1}, ld = columns, j;
    double row[columns];
    for (j = 0; j < columns; ++j) row[j] = value_at(i, j) + mine;
    NGA_Put(g_a, lo, hi, row, &ld);
  }
  GA_Sync();
  snprintf(name, sizeof name, "group%d", mine);
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "group", path_of(name), DRA_RW, unknown, &d_a) == 0);
  EXPECT(NDRA_Write(g_a, d_a, &request) == 0 && DRA_Wait(request) == 0);
  EXPECT(NDRA_Read(g_b, d_a, &request) == 0 && DRA_Wait(request) == 0);
  for (i = its_me; i < rows; i += its_processes) EXPECT(element(g_b, i, 5) == value_at(i, 5) + mine);
  GA_Sync();
  EXPECT(DRA_Delete(d_a) == 0);
  GA_Destroy(g_a);
  GA_Destroy(g_b);
  GA_Pgroup_set_default(GA_Pgroup_get_world());
  GA_Sync();

  /* When the array is gone, other processes get its number. */
  EXPECT(GA_Pgroup_destroy(group));
  for (i = 0; i < processes; ++i) list[i] = i;
  EXPECT(GA_Pgroup_create(list, processes) == group);
  GA_Pgroup_set_default(group);
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "all", path_of("all"), DRA_RW, unknown, &d_a) == 0);
  EXPECT(DRA_Delete(d_a) == 0);
  GA_Pgroup_set_default(GA_Pgroup_get_world());
  EXPECT(GA_Pgroup_destroy(group));
  GA_Sync();
}

/* Programs pass the name at process 0 only, or the name of a file that they made to see whether they may
 * write. */
static void names(void) {
  int g_a = created("a"), d_a = 0, request = 0, type = 0, axes = 0;
  dra_size_t its_dims[7];
  char name[16], inquired[72];
  FILE* file = fopen(path_of("names0"), "w");
  if (file) fclose(file);
  GA_Sync();
  snprintf(name, sizeof name, "names%d", me);
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "names", path_of(name), DRA_RW, unknown, &d_a) == 0);
  EXPECT(NDRA_Write(g_a, d_a, &request) == 0 && DRA_Wait(request) == 0 && DRA_Close(d_a) == 0);
  EXPECT(DRA_Open(path_of(name), DRA_RW, &d_a) == 0 && DRA_Delete(d_a) == 0);
  { /* Longer than the original has room for. */
    char filename[248], longer[440], long_name[500];
    memset(longer, 'x', sizeof longer);
    longer[219] = '/';
    longer[439] = 0;
    memset(long_name, 'n', sizeof long_name);
    long_name[499] = 0;
    longer[219] = 0;
    if (me == 0) mkdir(path_of(longer), 0777);
    longer[219] = '/';
    GA_Sync();
    EXPECT(NDRA_Create(C_DBL, 2, dra_dims, long_name, path_of(longer), DRA_RW, unknown, &d_a) == 0);
    EXPECT(NDRA_Inquire(d_a, &type, &axes, its_dims, inquired, filename) == 0);
    EXPECT(strlen(inquired) == 71 && strlen(filename) == 247);
    EXPECT(DRA_Delete(d_a) == 0);
    longer[219] = 0;
    if (me == 0) rmdir(path_of(longer));
  }
  GA_Destroy(g_a);
}

/* Each process reads thin slices for itself, in the order in which reads and writes were begun. */
static void slices(void) {
  int g_a = created("a"), g_b = created("b"), d_a = 0, request = 0, reading = 0, i;
  int lo[2] = {0, 11}, hi[2] = {rows - 1, 11}, status = 7;
  dra_size_t dlo[2] = {0, 11}, dhi[2] = {rows - 1, 11};
  double minus = -1;
  fill(g_a);
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "slices", path_of("slices"), DRA_RW, unknown, &d_a) == 0);
  EXPECT(NDRA_Write(g_a, d_a, &request) == 0);
  EXPECT(NDRA_Read_section(0, g_b, lo, hi, d_a, dlo, dhi, &reading) == 0); /* of what is being written */
  EXPECT(DRA_Wait(reading) == 0 && DRA_Wait(request) == 0);
  for (i = me; i < rows; i += processes) EXPECT(element(g_b, i, 11) == value_at(i, 11));
  GA_Sync();
  GA_Zero(g_b);
  GA_Scale(g_a, &minus);
  EXPECT(NDRA_Read_section(0, g_b, lo, hi, d_a, dlo, dhi, &reading) == 0);
  EXPECT(NDRA_Write(g_a, d_a, &request) == 0); /* what was read before it is old */
  do EXPECT(DRA_Probe(reading, &status) == 0);
  while (status != 0);
  EXPECT(DRA_Wait(reading) == 0 && DRA_Wait(request) == 0);
  for (i = me; i < rows; i += processes) EXPECT(element(g_b, i, 11) == value_at(i, 11));
  GA_Sync();
  EXPECT(NDRA_Read_section(0, g_b, lo, hi, d_a, dlo, dhi, &reading) == 0 && DRA_Wait(reading) == 0);
  for (i = me; i < rows; i += processes) EXPECT(element(g_b, i, 11) == -value_at(i, 11));
  GA_Sync();
  EXPECT(DRA_Delete(d_a) == 0);
  GA_Destroy(g_a);
  GA_Destroy(g_b);
}

/* A file is still there if no array was made in its place. */
static void a_file_stays(void) {
  int d_a = 0;
  dra_size_t wrong[2] = {rows, -1}, large[2] = {(dra_size_t)1 << 40, (dra_size_t)1 << 40};
  FILE* file = me == 0 ? fopen(path_of("file"), "w") : NULL;
  if (file) fclose(file);
  GA_Sync();
  EXPECT(NDRA_Create(C_DBL, 2, wrong, "f", path_of("file"), DRA_RW, unknown, &d_a) != 0);
  EXPECT(strstr(oc_pario_last_error(), "dimension -1") != NULL);
  EXPECT(NDRA_Create(C_DBL, 2, large, "f", path_of("file"), DRA_RW, unknown, &d_a) != 0);
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "f", path_of("file"), 77, unknown, &d_a) != 0);
  EXPECT(access(path_of("file"), F_OK) == 0);
  GA_Sync();
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "f", path_of("file"), DRA_RW, unknown, &d_a) == 0);
  EXPECT(DRA_Delete(d_a) == 0);
}

static void errors(void) {
  int g_a = created("a"), d_a = 0, request = 0, other = 0, status = 0, lo[2] = {0, 0}, hi[2] = {rows, 3};
  int right_hi[2] = {rows - 1, 3}, integers;
  dra_size_t dlo[2] = {0, 0}, dhi[2] = {rows - 1, 3}, narrow[2] = {rows - 1, 2};
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "e", path_of("no/such/directory"), DRA_RW, unknown, &d_a) != 0);
  EXPECT(strstr(oc_pario_last_error(), "no/such") != NULL);
  EXPECT(DRA_Open(path_of("nothing"), DRA_RW, &d_a) != 0);
  EXPECT(NDRA_Create(4711, 2, dra_dims, "e", path_of("errors"), DRA_RW, unknown, &d_a) != 0);
  EXPECT(NDRA_Create(C_DBL, 8, dra_dims, "e", path_of("errors"), DRA_RW, unknown, &d_a) != 0);
  EXPECT(NDRA_Create(C_DBL, 1000000000, dra_dims, "e", path_of("errors"), DRA_RW, unknown, &d_a) != 0);
  EXPECT(strstr(oc_pario_last_error(), "not 1000000000") != NULL);
  EXPECT(NDRA_Create(C_DBL, -1, dra_dims, "e", path_of("errors"), DRA_RW, unknown, &d_a) != 0);
  EXPECT(NDRA_Create(C_DBL, 2, NULL, "e", path_of("errors"), DRA_RW, unknown, &d_a) != 0);
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "e", path_of("errors"), DRA_RW, unknown, &d_a) == 0);
  EXPECT(NDRA_Write(-4000, d_a, &request) != 0 && strstr(oc_pario_last_error(), "no global array") != NULL);
  EXPECT(NDRA_Write(g_a, d_a + 77, &request) != 0 && request == DRA_REQ_INVALID);
  EXPECT(DRA_Wait(request) == 0);
  EXPECT(NDRA_Write_section(0, g_a, lo, hi, d_a, dlo, dhi, &request) != 0);
  EXPECT(strstr(oc_pario_last_error(), "[1:4,1:61]") != NULL);
  EXPECT(NDRA_Write_section(0, g_a, NULL, NULL, d_a, dlo, dhi, &request) != 0);
  EXPECT(NDRA_Write_section(0, g_a, lo, right_hi, d_a, dlo, narrow, &request) != 0);
  EXPECT(NDRA_Write_section(1, g_a, lo, right_hi, d_a, dlo, dhi, &request) != 0);
  integers = NGA_Create(C_INT, 2, ga_dims, "integers", NULL);
  EXPECT(NDRA_Write(integers, d_a, &request) != 0);
  GA_Destroy(integers);
  EXPECT(DRA_Wait(12345) != 0 && DRA_Probe(12345, &status) != 0);
  if (processes > 1) { /* one has a number that is none, and none at all */
    EXPECT(NDRA_Write(g_a, d_a, &request) == 0 && DRA_Wait(me == 0 ? 12345 : request) != 0);
    EXPECT(strlen(oc_pario_last_error()) > 20);
    EXPECT(NDRA_Write(g_a, d_a, &request) == 0 && DRA_Wait(me == 1 ? DRA_REQ_INVALID : request) != 0);
    EXPECT(strstr(oc_pario_last_error(), "DRA_REQ_INVALID") != NULL);
    EXPECT(DRA_Wait(me == 1 ? request : DRA_REQ_INVALID) != 0); /* it is still under way there */
    EXPECT(DRA_Wait(DRA_REQ_INVALID) == 0);
  }
  /* The array in memory is destroyed while it is written. */
  fill(g_a);
  EXPECT(NDRA_Write(g_a, d_a, &request) == 0);
  GA_Destroy(g_a);
  EXPECT(DRA_Wait(request) == 0);
  EXPECT(DRA_Wait(request) == 0 && DRA_Probe(request, &status) == 0 &&
         status == 0); /* again, as programs do */
  g_a = created("a");
  EXPECT(NDRA_Read(g_a, d_a, &request) == 0 && DRA_Wait(request) == 0 &&
         element(g_a, 7, 9) == value_at(7, 9));
  GA_Sync();
  DRA_Flick();
  if (me == 0) DRA_Print_internals(d_a); /* not collective */
  EXPECT(NDRA_Read(g_a, d_a, &other) == 0 && DRA_Close(d_a) == 0 && DRA_Wait(other) == 0);
  EXPECT(DRA_Close(d_a) != 0);
  EXPECT(DRA_Open(path_of("errors"), DRA_RW, &d_a) == 0 && DRA_Delete(d_a) == 0);
  GA_Destroy(g_a);
}
#endif

int main(int count, char** arguments) {
  begin(count, arguments);
  EXPECT(DRA_Init(10, 1e9, 1e10, -1) == 0);
  whole_arrays();
  sections();
#ifdef PRELOADED
  names_are_ours();
#endif
#ifndef ORIGINAL
  configured();
  a_created_array_is_zero();
  a_block_cyclic_array();
  types_and_axes();
  groups();
  names();
  slices();
  a_file_stays();
  errors();
#endif
  EXPECT(DRA_Terminate() == 0);
  return end();
}
