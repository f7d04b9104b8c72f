/* Shared files and record files from C on several processes, each of which may be a node (OUTCORE_NODES). */
#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "outcore/outcore.h"

static int failures = 0, world = 0, rank = -1, size = 0;

#define EXPECT(condition)                                                            \
  do {                                                                               \
    if (!(condition)) {                                                              \
      printf("FAIL  process %d: %s:%d: %s\n", rank, __FILE__, __LINE__, #condition); \
      ++failures;                                                                    \
    }                                                                                \
  } while (0)

static void fill(int64_t* values, int count, int writer, int block) {
  int i;
  for (i = 0; i < count; ++i) values[i] = ((int64_t)writer << 40) + ((int64_t)block << 20) + i;
}

/* Processes write blocks by turns; each then reads those of its neighbour, one by one and as a list. */
static void reads_what_others_wrote(int64_t client_cache_bytes) {
  enum { blocks = 9, count = 5000, bytes = count * 8 };
  oc_sf_options options = {.size = sizeof options};
  oc_sf_range ranges[blocks];
  int file = 0, block, other = (rank + 1) % size;
  int64_t *out = malloc(bytes), *in = calloc(blocks, bytes), length = 0;
  options.placement = OC_PLACEMENT_LOCAL;
  options.typical_request_bytes = bytes;
  options.client_cache_bytes = client_cache_bytes;
  EXPECT(oc_sf_create(world, "blocks", &options, &file) == OC_OK);
  for (block = 0; block < blocks; ++block) {
    fill(out, count, rank, block);
    EXPECT(oc_sf_write(file, (int64_t)(block * size + rank) * bytes, out, bytes) == OC_OK);
  }
  EXPECT(oc_world_barrier(world) == OC_OK && oc_sf_sync(file) == OC_OK);
  EXPECT(oc_sf_length(file, &length) == OC_OK && length == (int64_t)blocks * size * bytes);
  for (block = 0; block < blocks; ++block) {
    ranges[block].offset = (int64_t)(block * size + other) * bytes;
    ranges[block].buffer = in + block * count;
    ranges[block].bytes = bytes;
    fill(out, count, other, block);
    EXPECT(oc_sf_read(file, ranges[block].offset, in, bytes) == OC_OK && memcmp(in, out, bytes) == 0);
  }
  EXPECT(oc_sf_readv(file, blocks, ranges) == OC_OK);
  for (block = 0; block < blocks; ++block) {
    fill(out, count, other, block);
    EXPECT(memcmp(in + block * count, out, bytes) == 0);
  }
  EXPECT(oc_world_barrier(world) == OC_OK); /* all have read; the first block changes */
  fill(out, count, rank + 100, 0);
  EXPECT(oc_sf_write(file, (int64_t)rank * bytes, out, bytes) == OC_OK);
  EXPECT(oc_world_barrier(world) == OC_OK && oc_sf_sync(file) == OC_OK);
  fill(out, count, other + 100, 0);
  EXPECT(oc_sf_read(file, (int64_t)other * bytes, in, bytes) == OC_OK && memcmp(in, out, bytes) == 0);
  EXPECT(oc_sf_close(file) == OC_OK);
  free(out);
  free(in);
}

/* Each process replaces the records of its neighbour by longer ones. */
static void rewrites_records_of_others(void) {
  enum { each = 20, most = 40 * each };
  oc_rf_options options = {.size = sizeof options};
  int file = 0, i, other = (rank + 1) % size, before = (rank + size - 1) % size;
  int64_t out[most], in[most], bytes = 0;
  options.records = (int64_t)each * size;
  EXPECT(oc_rf_create(world, "records", &options, &file) == OC_OK);
  for (i = 0; i < each; ++i) {
    fill(out, i, rank, i);
    EXPECT(oc_rf_put(file, rank * each + i, out, 8 * i) == OC_OK);
  }
  EXPECT(oc_world_barrier(world) == OC_OK);
  for (i = 0; i < each; ++i) {
    fill(out, i, other, i);
    EXPECT(oc_rf_get(file, other * each + i, in, sizeof in, &bytes) == OC_OK && bytes == 8 * i);
    EXPECT(memcmp(in, out, 8 * (size_t)i) == 0);
    fill(out, 40 * i, rank, 50 + i);
    EXPECT(oc_rf_put(file, other * each + i, out, 320 * i) == OC_OK);
  }
  EXPECT(oc_world_barrier(world) == OC_OK);
  for (i = 0; i < each; ++i) {
    fill(out, 40 * i, before, 50 + i);
    EXPECT(oc_rf_get(file, rank * each + i, in, sizeof in, &bytes) == OC_OK && bytes == 320 * i);
    EXPECT(memcmp(in, out, 320 * (size_t)i) == 0);
  }
  EXPECT(oc_rf_close(file) == OC_OK);
}

static void all_see_that_hints_differ(void) {
  oc_sf_options options = {.size = sizeof options};
  int file = 0;
  options.typical_request_bytes = rank == size - 1 ? 4096 : 8192;
  EXPECT(oc_sf_create(world, "differ", &options, &file) == (size > 1 ? EINVAL : OC_OK));
  if (size == 1) EXPECT(oc_sf_close(file) == OC_OK);
}

static void all_see_that_one_has_no_place_for_the_number(void) {
  oc_rf_options records = {.size = sizeof records};
  int file = 0;
  records.records = 1;
  EXPECT(oc_sf_create(world, "nowhere", NULL, rank == 0 ? NULL : &file) == EINVAL);
  EXPECT(oc_rf_create(world, "nowhere", &records, rank == 0 ? NULL : &file) == EINVAL);
}

/* The first call loads the part that calls MPI, and opens a file for that: the last process cannot open one.
 * */
static void all_see_that_one_cannot_load_what_calls_mpi(const oc_world_options* options) {
  struct rlimit before, none;
  int processes = 0, number = 0, refused = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  getrlimit(RLIMIT_NOFILE, &before);
  none = before;
  none.rlim_cur = 0;
  if (number == processes - 1) setrlimit(RLIMIT_NOFILE, &none);
  refused = oc_world_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), options, &world);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT(refused == ENOTSUP);
}

int main(int count, char** arguments) {
  int given = 0, all = 0;
  oc_world_options options = {.size = sizeof options};
  MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &given);
  options.memory_bytes = 64 << 20;
  all_see_that_one_cannot_load_what_calls_mpi(&options);
  EXPECT(oc_world_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), &options, &world) == OC_OK);
  EXPECT(oc_world_rank(world, &rank, &size) == OC_OK);
  reads_what_others_wrote(0);
  reads_what_others_wrote(8 << 20);
  rewrites_records_of_others();
  all_see_that_hints_differ();
  all_see_that_one_has_no_place_for_the_number();
  EXPECT(oc_world_close(world) == OC_OK);
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d failed\n", all);
  MPI_Finalize();
  return all != 0;
}
