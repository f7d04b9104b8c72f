/* Disk resident arrays by their classic names, with real global arrays of all types, dimensions and
 * distributions, with any number of transfers at once, and with arrays and disks that vanish meanwhile. The
 * argument is a directory. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "dra.h"
#include "ga_program.h"

extern const char* oc_pario_last_error(void);

enum { rows = 40, columns = 30 };
static int dims[2] = {rows, columns};
static dra_size_t dra_dims[2] = {rows, columns}, unknown[7] = {-1, -1, -1, -1, -1, -1, -1};

static char* path_of(const char* name) {
  static char path[1200];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

static int request; /* the one under way */

static int done(int code) {
  return code == 0 && DRA_Wait(request) == 0;
}

/* For each type and number of axes: the whole array, and its axes in reverse order. */
static void types_and_axes(void) {
  static const int types[] = {C_INT, C_LONG, C_LONGLONG, C_FLOAT, C_DBL, C_SCPL, C_DCPL};
  static const int bytes[] = {4, 8, 8, 4, 8, 8, 16};
  int t, axes, k, i, b, d_a = 0;
  for (t = 0; t < 7; ++t)
    for (axes = 1; axes <= 7; ++axes) {
      int extents[7], turned[7], lo[7] = {0}, hi[7], turned_hi[7], ld[7], turned_ld[7], count = 1, wrong = 0;
      dra_size_t its_dims[7], its_lo[7] = {0}, its_hi[7];
      int g_a, g_b;
      char *out, *in;
      for (k = 0; k < axes; ++k) {
        extents[k] = axes == 1 ? 50 : 2 + (k + t) % 3;
        turned[axes - 1 - k] = extents[k];
        its_dims[k] = extents[k];
        its_hi[k] = hi[k] = extents[k] - 1;
        count *= extents[k];
      }
      for (k = 0; k < axes; ++k) turned_hi[k] = turned[k] - 1;
      for (k = 1; k < axes; ++k) ld[k - 1] = extents[k], turned_ld[k - 1] = turned[k];
      out = malloc((size_t)(count * bytes[t]));
      in = calloc((size_t)count, (size_t)bytes[t]);
      for (b = 0; b < count * bytes[t]; ++b) out[b] = (char)(b * 11 % 63);
      g_a = NGA_Create(types[t], axes, extents, "a", NULL);
      g_b = NGA_Create(types[t], axes, turned, "b", NULL);
      if (me == 0) NGA_Put(g_a, lo, hi, out, ld);
      GA_Sync();
      EXPECT(NDRA_Create(types[t], axes, its_dims, "axes", path_of("axes"), DRA_RW, unknown, &d_a) == 0);
      EXPECT(done(NDRA_Write(g_a, d_a, &request)));
      EXPECT(done(NDRA_Read_section(1, g_b, lo, turned_hi, d_a, its_lo, its_hi, &request)));
      NGA_Get(g_b, lo, turned_hi, in, turned_ld);
      for (i = 0; i < count; ++i) { /* element i of the array is element `there` of what is turned */
        int rest = i, there = 0, index[7];
        for (k = axes; k-- > 0; rest /= extents[k]) index[k] = rest % extents[k];
        for (k = axes; k-- > 0;) there = there * extents[k] + index[k];
        wrong += memcmp(out + i * bytes[t], in + there * bytes[t], (size_t)bytes[t]) != 0;
      }
      EXPECT(wrong == 0);
      GA_Sync();
      GA_Zero(g_a);
      /* Read back, which reverses the axes once more. */
      EXPECT(done(NDRA_Write_section(1, g_b, lo, turned_hi, d_a, its_lo, its_hi, &request)));
      EXPECT(done(NDRA_Read(g_a, d_a, &request)));
      memset(in, 0, (size_t)(count * bytes[t]));
      NGA_Get(g_a, lo, hi, in, ld);
      EXPECT(memcmp(in, out, (size_t)(count * bytes[t])) == 0);
      GA_Sync();
      EXPECT(DRA_Delete(d_a) == 0);
      GA_Destroy(g_a);
      GA_Destroy(g_b);
      free(out);
      free(in);
    }
}

static int regular(void) {
  return NGA_Create(C_DBL, 2, dims, "regular", NULL);
}

static int irregular(void) {
  int blocks[2] = {1, 1}, begins[4] = {0, 0, 0, 0};
  if (processes > 1) blocks[0] = 2, begins[1] = 33; /* for the first two processes */
  begins[blocks[0]] = 0;
  return NGA_Create_irreg(C_DBL, 2, dims, "irregular", blocks, begins);
}

static int with_ghosts(void) {
  int width[2] = {2, 1};
  return NGA_Create_ghosts(C_DBL, 2, dims, width, "ghosts", NULL);
}

static int of_some_processes(void) {
  int g_a = GA_Create_handle(), list[64], count = 0, i;
  for (i = processes - 1; i >= processes / 2; --i) list[count++] = i; /* the last come first */
  GA_Set_data(g_a, 2, dims, C_DBL);
  GA_Set_restricted(g_a, list, count);
  EXPECT(GA_Allocate(g_a));
  return g_a;
}

static int block_cyclic(void) {
  int g_a = GA_Create_handle(), block[2] = {7, 5};
  GA_Set_data(g_a, 2, dims, C_DBL);
  GA_Set_block_cyclic(g_a, block);
  EXPECT(GA_Allocate(g_a));
  return g_a;
}

static int on_a_grid(void) {
  int g_a = GA_Create_handle(), block[2] = {7, 5}, grid[2] = {1, 1};
  grid[1] = processes;
  GA_Set_data(g_a, 2, dims, C_DBL);
  GA_Set_block_cyclic_proc_grid(g_a, block, grid);
  EXPECT(GA_Allocate(g_a));
  return g_a;
}

static int mirrored(void) {
  return NGA_Create_config(C_DBL, 2, dims, "mirrored", NULL, GA_Pgroup_get_mirror());
}

static void set(int g_a, double first) {
  double values[rows * columns];
  int lo[2] = {0, 0}, hi[2] = {rows - 1, columns - 1}, ld = columns, i;
  for (i = 0; i < rows * columns; ++i) values[i] = first + i;
  if (me == 0 || GA_Is_mirrored(g_a)) NGA_Put(g_a, lo, hi, values, &ld);
  GA_Sync();
}

static int has(int g_a, double first) {
  double values[rows * columns];
  int lo[2] = {0, 0}, hi[2] = {rows - 1, columns - 1}, ld = columns, i, right = 0;
  NGA_Get(g_a, lo, hi, values, &ld);
  for (i = 0; i < rows * columns; ++i) right += values[i] == first + i;
  GA_Sync();
  return right == rows * columns;
}

/* An array in memory of any distribution reads what one of another distribution has written. */
static void distributions(void) {
  static int (*const make[])(void) = {regular,      irregular, with_ghosts, of_some_processes,
                                      block_cyclic, on_a_grid, mirrored};
  int i, d_a = 0, other = regular();
  for (i = 0; i < (int)(sizeof make / sizeof make[0]); ++i) {
    int g_a = make[i]();
    EXPECT(g_a != 0);
    set(g_a, 1000 * i);
    EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "d", path_of("distributions"), DRA_RW, unknown, &d_a) == 0);
    EXPECT(done(NDRA_Write(g_a, d_a, &request)));
    EXPECT(done(NDRA_Read(other, d_a, &request)) && has(other, 1000 * i));
    set(other, -7);
    EXPECT(done(NDRA_Write(other, d_a, &request)));
    EXPECT(done(NDRA_Read(g_a, d_a, &request)) && has(g_a, -7));
    EXPECT(DRA_Delete(d_a) == 0);
    GA_Destroy(g_a);
  }
  GA_Destroy(other);
}

static int refused(int code, const char* first, const char* second) {
  return code != 0 && request == DRA_REQ_INVALID && strstr(oc_pario_last_error(), first) &&
         strstr(oc_pario_last_error(), second);
}

/* Arrays in memory and on disk that belong to other processes than the callers: an error at each caller. */
static void of_other_processes(void) {
  int list[64], count = (processes + 1) / 2, i, g_all = regular(), g_mirror = mirrored(), d_all = 0, group;
  char all[400] = "belongs to the processes 0", half[400] = "used by the processes 0";
  if (processes < 2) return;
  for (i = 0; i < count; ++i) list[i] = i;
  for (i = 1; i < processes; ++i) sprintf(all + strlen(all), ", %d", i);
  for (i = 1; i < count; ++i) sprintf(half + strlen(half), ", %d", i);
  strcat(half, " of the default group");
  set(g_all, 1);
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "all", path_of("all"), DRA_RW, unknown, &d_all) == 0);
  group = GA_Pgroup_create(list, count);
  if (me < count) {
    int g_a, d_a = 0;
    GA_Pgroup_set_default(group);
    g_a = regular();
    EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "half", path_of("half"), DRA_RW, unknown, &d_a) == 0);
    EXPECT(refused(NDRA_Write(g_all, d_a, &request), all, half));
    EXPECT(refused(NDRA_Read(g_mirror, d_a, &request), all, half));
    EXPECT(refused(NDRA_Write(g_a, d_all, &request), all, half));
    EXPECT(DRA_Close(d_all) != 0);
    set(g_a, 2);
    EXPECT(done(NDRA_Write(g_a, d_a, &request)) && done(NDRA_Read(g_a, d_a, &request)) && has(g_a, 2));
    GA_Destroy(g_a);
    EXPECT(DRA_Delete(d_a) == 0);
    GA_Pgroup_set_default(GA_Pgroup_get_world());
  }
  GA_Sync();
  EXPECT(GA_Pgroup_destroy(group));
  EXPECT(done(NDRA_Write(g_all, d_all, &request)) && done(NDRA_Read(g_mirror, d_all, &request)));
  EXPECT(has(g_mirror, 1) && DRA_Delete(d_all) == 0);
  GA_Destroy(g_all);
  GA_Destroy(g_mirror);
}

/* Many transfers at once, waited for from the last to the first. */
static void many_at_once(void) {
  int g_a = regular(), g_b = regular(), requests[2 * rows], i, d_a = 0, count = 0;
  set(g_a, 5);
  GA_Zero(g_b);
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "many", path_of("many"), DRA_RW, unknown, &d_a) == 0);
  for (i = 0; i < rows; ++i) {
    int lo[2] = {i, 0}, hi[2] = {i, columns - 1};
    dra_size_t dlo[2] = {i, 0}, dhi[2] = {i, columns - 1};
    EXPECT(NDRA_Write_section(0, g_a, lo, hi, d_a, dlo, dhi, &requests[count++]) == 0);
    EXPECT(NDRA_Read_section(0, g_b, lo, hi, d_a, dlo, dhi, &requests[count++]) == 0);
  }
  while (count-- > 0) EXPECT(DRA_Wait(requests[count]) == 0);
  EXPECT(has(g_b, 5));
  EXPECT(DRA_Delete(d_a) == 0);
  GA_Destroy(g_a);
  GA_Destroy(g_b);
}

/* A large array is destroyed while it is written and read; the next array with its number is left alone. */
static void destroyed(void) {
  int size[2] = {1024, 2048}, cyclic_size[2] = {1024, 2048}, block[2] = {100, 100}, lo[2] = {7, 9}, ld = 1;
  int g_a = NGA_Create(C_DBL, 2, size, "large", NULL), g_b, d_a = 0, again = 0, i;
  dra_size_t its_size[2] = {1024, 2048};
  double three = 3, four = 4, value = 0;
  GA_Fill(g_a, &three);
  EXPECT(NDRA_Create(C_DBL, 2, its_size, "large", path_of("large"), DRA_RW, unknown, &d_a) == 0);
  EXPECT(NDRA_Write(g_a, d_a, &request) == 0);
  GA_Destroy(g_a);
  g_b = NGA_Create(C_DBL, 2, size, "another", NULL);
  GA_Fill(g_b, &four);
  EXPECT(DRA_Wait(request) == 0);
  EXPECT(done(NDRA_Read(g_b, d_a, &request)));
  NGA_Get(g_b, lo, lo, &value, &ld);
  EXPECT(value == 3);
  GA_Sync();
  GA_Fill(g_b, &four);
  for (i = 0; i < 2; ++i) { /* one whose memory is read into, one that has a buffer */
    g_a = GA_Create_handle();
    GA_Set_data(g_a, 2, cyclic_size, C_DBL);
    if (i == 1) GA_Set_block_cyclic(g_a, block);
    EXPECT(GA_Allocate(g_a));
    EXPECT(NDRA_Read(g_a, d_a, &request) == 0);
    GA_Destroy(g_a);
    again = NGA_Create(C_DBL, 2, size, "again", NULL);
    EXPECT(again == g_a);
    GA_Fill(again, &four);
    EXPECT(DRA_Wait(request) == 0);
    NGA_Get(again, lo, lo, &value, &ld);
    EXPECT(value == 4);
    GA_Sync();
    GA_Destroy(again);
  }
  EXPECT(DRA_Delete(d_a) == 0);
  GA_Destroy(g_b);
}

static int unseen; /* whether memory of global arrays goes without a word to the library */

int MPI_Win_free(MPI_Win* window) {
  int (*next)(MPI_Win*);
  if (unseen) return PMPI_Win_free(window);
  *(void**)&next = dlsym(RTLD_NEXT, "MPI_Win_free");
  return next(window);
}

/* An array is destroyed while nothing can wait for its transfer: an error of dra_wait, at all processes. */
static void destroyed_unseen(void) {
  int g_a = block_cyclic(), d_a = 0, writes;
  set(g_a, 3);
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "unseen", path_of("unseen"), DRA_RW, unknown, &d_a) == 0);
  for (writes = 1; writes >= 0; --writes) {
    EXPECT((writes ? NDRA_Write : NDRA_Read)(g_a, d_a, &request) == 0);
    unseen = 1;
    GA_Destroy(g_a);
    unseen = 0;
    EXPECT(DRA_Wait(request) == EBADF && strstr(oc_pario_last_error(), "was destroyed before dra_wait"));
    EXPECT(DRA_Wait(request) == 0); /* it has ended */
    g_a = block_cyclic();
  }
  EXPECT(done(NDRA_Read(g_a, d_a, &request)) && has(g_a, 3));
  EXPECT(DRA_Delete(d_a) == 0);
  GA_Destroy(g_a);
}

extern void* __libc_malloc(size_t bytes);
static size_t largest = SIZE_MAX; /* that is given out */

void* malloc(size_t bytes) {
  return bytes <= largest ? __libc_malloc(bytes) : NULL;
}

/* One process has no memory: a code and a text at all processes. */
static void no_memory(void) {
  int size[2] = {1024, 2048}, block[2] = {100, 100}, g_a = GA_Create_handle(), d_a = 0;
  dra_size_t its_size[2] = {1024, 2048};
  GA_Set_data(g_a, 2, size, C_DBL);
  GA_Set_block_cyclic(g_a, block);
  EXPECT(GA_Allocate(g_a));
  EXPECT(NDRA_Create(C_DBL, 2, its_size, "memory", path_of("memory"), DRA_RW, unknown, &d_a) == 0);
  if (me == processes - 1) largest = 1 << 20;
  EXPECT(refused(NDRA_Write(g_a, d_a, &request), "DRA: ", me == processes - 1 ? "no memory" : "another"));
  EXPECT(refused(NDRA_Read(g_a, d_a, &request), "DRA: ", me == processes - 1 ? "no memory" : "another"));
  largest = SIZE_MAX;
  EXPECT(done(NDRA_Write(g_a, d_a, &request)) && DRA_Delete(d_a) == 0);
  GA_Destroy(g_a);
}

/* A full disk: a code and a text at all processes, from the write or from its wait. */
static void full_disk(void) {
  int size[2] = {1024, 2048}, g_a = NGA_Create(C_DBL, 2, size, "large", NULL), d_a = 0, code;
  dra_size_t its_size[2] = {1024, 2048};
  struct rlimit before, small = {1 << 20, RLIM_INFINITY};
  double one = 1;
  GA_Fill(g_a, &one);
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &before);
  small.rlim_max = before.rlim_max;
  EXPECT(NDRA_Create(C_DBL, 2, its_size, "full", path_of("full"), DRA_RW, unknown, &d_a) == 0);
  if (me == processes - 1) setrlimit(RLIMIT_FSIZE, &small);
  code = NDRA_Write(g_a, d_a, &request);
  if (code == 0) code = DRA_Wait(request);
  EXPECT(code != 0 && strlen(oc_pario_last_error()) > 20);
  GA_Sync();
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT(done(NDRA_Write(g_a, d_a, &request)));
  EXPECT(DRA_Delete(d_a) == 0);
  GA_Destroy(g_a);
}

/* Errors are printed as long as this is switched on. */
static void debugged(void) {
  char text[2000] = "", name[40], *first;
  int code, copy = dup(2), printed;
  snprintf(name, sizeof name, "errors%d", me);
  printed = open(path_of(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
  dup2(printed, 2);
  DRA_Set_debug(1);
  code = DRA_Close(4711);
  DRA_Set_debug(0);
  DRA_Close(4712);
  dup2(copy, 2);
  lseek(printed, 0, SEEK_SET);
  EXPECT(code != 0 && read(printed, text, sizeof text - 1) > 0);
  close(copy);
  close(printed);
  unlink(path_of(name));
  first = strstr(text, "outcore: DRA: there is no disk array 4711");
  EXPECT(first && strstr(first + 1, "outcore: ") == NULL && strstr(text, "4712") == NULL);
}

/* What DRA_Print_internals prints. */
static void internals(void) {
  char text[2000] = "";
  int d_a = 0, copy, printed;
  EXPECT(NDRA_Create(C_DBL, 2, dra_dims, "inside", path_of("inside"), DRA_RW, unknown, &d_a) == 0);
  if (me == 0) {
    fflush(stdout);
    copy = dup(1);
    printed = open(path_of("printed"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(printed, 1);
    DRA_Print_internals(d_a);
    dup2(copy, 1);
    lseek(printed, 0, SEEK_SET);
    EXPECT(read(printed, text, sizeof text - 1) > 0);
    close(copy);
    close(printed);
    EXPECT(strstr(text, "\"inside\"") && strstr(text, directory) && strstr(text, "dimensions: 30 40"));
    unlink(path_of("printed"));
  }
  GA_Sync();
  EXPECT(DRA_Delete(d_a) == 0);
}

int main(int count, char** arguments) {
  begin(count, arguments);
  EXPECT(DRA_Init(10, 1e9, 1e10, -1) == 0);
  types_and_axes();
  distributions();
  of_other_processes();
  many_at_once();
  destroyed();
  destroyed_unseen();
  no_memory();
  full_disk();
  debugged();
  internals();
  EXPECT(DRA_Terminate() == 0);
  return end();
}
