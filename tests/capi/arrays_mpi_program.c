/* Worlds, global, disk and block-sparse arrays, contractions and calls from C on several processes. */
#define _XOPEN_SOURCE 700 /* mkdtemp, nftw */
#include <errno.h>
#include <ftw.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outcore/outcore.h"

static int failures = 0, world = 0, rank = -1, size = 0;
static char scratch[64] = "/var/tmp/outcore-test-XXXXXX";

#define EXPECT(condition)                                                                                  \
  do {                                                                                                     \
    if (!(condition)) {                                                                                    \
      printf("FAIL  process %d: %s:%d: %s (%s)\n", rank, __FILE__, __LINE__, #condition, oc_last_error()); \
      ++failures;                                                                                          \
    }                                                                                                      \
  } while (0)

enum { rows = 12, columns = 10 };
static const int64_t shape[2] = {rows, columns}, none[2] = {0, 0};

static double value_at(int64_t i, int64_t j) {
  return 100.0 * (double)i + (double)j;
}

static int removed(const char* path, const struct stat* about, int kind, struct FTW* where) {
  (void)about, (void)kind, (void)where;
  return remove(path);
}

static void remove_all(const char* path) {
  nftw(path, removed, 16, FTW_DEPTH | FTW_PHYS);
}

/* Each process puts rows rank, rank + size, .. of an array. */
static void put_rows(int array) {
  int64_t begin[2] = {0, 0}, end[2] = {0, columns}, i;
  int j;
  double row[columns];
  for (i = rank; i < rows; i += size) {
    begin[0] = i;
    end[0] = i + 1;
    for (j = 0; j < columns; ++j) row[j] = value_at(i, j);
    EXPECT(oc_ga_put(array, begin, end, row, NULL) == OC_OK);
  }
  EXPECT(oc_ga_sync(array) == OC_OK);
}

static int has_values(double (*found)[columns]) {
  int i, j, right = 0;
  for (i = 0; i < rows; ++i)
    for (j = 0; j < columns; ++j) right += found[i][j] == value_at(i, j);
  return right == rows * columns;
}

static int created(const oc_ga_options* options) {
  int array = 0;
  EXPECT(oc_ga_create(world, OC_FLOAT64, 2, shape, options, &array) == OC_OK && array > 0);
  return array;
}

static void global_arrays_of_all_distributions(void) {
  const int64_t one_block[2] = {1, 1}, from_zero[2] = {0, 0}, block[2] = {3, 4};
  oc_ga_options irregular = {.size = sizeof irregular}, cyclic = {.size = sizeof cyclic};
  int regular = created(NULL), first, second, owner = -1, type = 0, dimensions = 0, i;
  int64_t its_shape[OC_MAX_RANK] = {0}, begin[2], end[2], volume = 0;
  int64_t transposed[2] = {8, 8 * rows};
  double found[rows][columns], other[columns][rows], sum = 0, wanted = 0, alpha = 2, one = 1;
  void* local = NULL;
  irregular.distribution = OC_DISTRIBUTION_IRREGULAR;
  irregular.blocks = one_block;
  irregular.begins = from_zero;
  cyclic.distribution = OC_DISTRIBUTION_BLOCK_CYCLIC;
  cyclic.blocks = block;
  first = created(&irregular);
  second = created(&cyclic);

  EXPECT(oc_ga_inquire(regular, &type, &dimensions, its_shape) == OC_OK && type == OC_FLOAT64);
  EXPECT(dimensions == 2 && its_shape[0] == rows && its_shape[1] == columns);
  for (i = 0; i < size; ++i) {
    EXPECT(oc_ga_distribution(regular, i, begin, end) == OC_OK);
    volume += (end[0] - begin[0]) * (end[1] - begin[1]);
  }
  EXPECT(volume == rows * columns);
  EXPECT(oc_ga_distribution(second, 0, begin, end) == EINVAL);
  EXPECT(oc_ga_owner(first, none, &owner) == OC_OK && owner == 0);

  put_rows(regular);
  EXPECT(oc_ga_copy(regular, first) == OC_OK && oc_ga_copy(first, second) == OC_OK);
  EXPECT(oc_ga_get(second, none, shape, found, NULL) == OC_OK && has_values(found));
  EXPECT(oc_ga_get(second, none, shape, other, transposed) == OC_OK && other[7][5] == value_at(5, 7));
  for (i = 0; i < rows * columns; ++i)
    wanted += value_at(i / columns, i % columns) * value_at(i / columns, i % columns);
  EXPECT(oc_ga_dot(regular, second, &sum) == OC_OK && sum == wanted);

  EXPECT(oc_ga_sync(second) == OC_OK);
  for (i = 0; i < rows * columns; ++i) found[i / columns][i % columns] = 1;
  EXPECT(oc_ga_acc(second, none, shape, found, NULL, &alpha) == OC_OK && oc_ga_sync(second) == OC_OK);
  EXPECT(oc_ga_get(second, none, shape, found, NULL) == OC_OK);
  EXPECT(found[3][4] == value_at(3, 4) + 2 * size);
  EXPECT(oc_ga_sync(second) == OC_OK && oc_ga_fill(second, &one) == OC_OK);
  EXPECT(oc_ga_dot(second, second, &sum) == OC_OK && sum == rows * columns);
  EXPECT(oc_ga_local(regular, &local, its_shape, NULL) == OC_OK);
  EXPECT(oc_ga_distribution(regular, rank, begin, end) == OC_OK && its_shape[0] == end[0] - begin[0]);
  if (its_shape[0] * its_shape[1] > 0) EXPECT(*(double*)local == value_at(begin[0], begin[1]));
  EXPECT(oc_ga_close(regular) == OC_OK && oc_ga_close(first) == OC_OK && oc_ga_close(second) == OC_OK);
  EXPECT(oc_ga_close(second) == EBADF);
}

/* c = 2 a^T a - c, against loops; products of integers, of shapes that do not fit and into a factor itself
 * are refused.
 */
static void products(void) {
  const int64_t square[2] = {columns, columns}, block[2] = {3, 4};
  oc_ga_options cyclic = {.size = sizeof cyclic};
  int a = created(NULL), c = 0, integers = 0, i, j, k, right = 0;
  double found[columns][columns], alpha = 2, beta = -1, start = 7;
  cyclic.distribution = OC_DISTRIBUTION_BLOCK_CYCLIC;
  cyclic.blocks = block;
  put_rows(a);
  EXPECT(oc_ga_create(world, OC_FLOAT64, 2, square, &cyclic, &c) == OC_OK);
  EXPECT(oc_ga_fill(c, &start) == OC_OK);
  EXPECT(oc_ga_gemm('T', 'N', &alpha, a, a, &beta, c) == OC_OK);
  EXPECT(oc_ga_get(c, none, square, found, NULL) == OC_OK);
  for (i = 0; i < columns; ++i)
    for (j = 0; j < columns; ++j) {
      double wanted = -7;
      for (k = 0; k < rows; ++k) wanted += 2 * value_at(k, i) * value_at(k, j);
      right += found[i][j] == wanted;
    }
  EXPECT(right == columns * columns);
  EXPECT(oc_ga_gemm('N', 'N', NULL, a, c, NULL, a) == EINVAL);
  EXPECT(oc_ga_gemm('N', 'N', NULL, a, a, NULL, c) == EINVAL && strstr(oc_last_error(), "[12, 10]") != NULL);
  EXPECT(oc_ga_gemm('T', rank == 0 ? 'X' : 'N', NULL, a, a, NULL, c) == EINVAL);
  EXPECT(oc_ga_create(world, OC_INT64, 2, square, NULL, &integers) == OC_OK);
  EXPECT(oc_ga_gemm('T', 'N', NULL, a, a, NULL, integers) == EINVAL);
  EXPECT(oc_ga_gemm('T', 'N', NULL, a, rank == 0 ? 4711 : a, NULL, c) == EBADF);
  EXPECT(oc_ga_copy(a, rank == 0 ? 4711 : c) == EBADF && oc_ga_dot(a, rank == 0 ? 4711 : a, &start) == EBADF);
  EXPECT(oc_ga_gemm('T', 'N', &alpha, a, a, rank == 0 ? &beta : &start, c) == (size > 1 ? EINVAL : OC_OK));
  EXPECT(oc_ga_close(integers) == OC_OK && oc_ga_close(a) == OC_OK && oc_ga_close(c) == OC_OK);
}

static void single_elements(void) {
  const int64_t extent = 20;
  int array = 0, i;
  int64_t indices[3] = {0, 0, 0}, values[3], zero = 0, before = -1;
  EXPECT(oc_ga_create(world, OC_INT64, 1, &extent, NULL, &array) == OC_OK);
  for (i = 0; i < 3; ++i) indices[i] = (rank + i * size) % extent, values[i] = 7 * indices[i];
  EXPECT(oc_ga_scatter(array, 3, indices, values) == OC_OK && oc_ga_sync(array) == OC_OK);
  memset(values, 0, sizeof values);
  EXPECT(oc_ga_gather(array, 3, indices, values) == OC_OK && values[1] == 7 * indices[1]);
  EXPECT(oc_ga_sync(array) == OC_OK && oc_ga_fill(array, NULL) == OC_OK);
  EXPECT(oc_ga_read_increment(array, &zero, 1, &before) == OC_OK && before >= 0 && before < size);
  EXPECT(oc_ga_sync(array) == OC_OK && oc_ga_gather(array, 1, &zero, values) == OC_OK && values[0] == size);
  EXPECT(oc_ga_sync(array) == OC_OK); /* all have seen it */
  EXPECT(oc_ga_scatter_acc(array, 1, &zero, &before, NULL) == OC_OK && oc_ga_sync(array) == OC_OK);
  EXPECT(oc_ga_gather(array, 1, &zero, values) == OC_OK && values[0] == size + size * (size - 1) / 2);
  values[0] = extent;
  EXPECT(oc_ga_gather(array, 1, values, values) == EINVAL);
  EXPECT(oc_ga_close(array) == OC_OK);
}

static void disk_arrays(void) {
  char path[96], text[16] = "";
  const int turned[2] = {1, 0};
  const int64_t other_shape[2] = {columns, rows};
  int array = 0, memory = created(NULL), back = 0, i;
  int64_t request = 0, request_2 = 0, begin[2] = {2, 3}, end[2] = {3, 6}, bytes = -1, chunk[2] = {0, 0};
  double found[rows][columns], line[3] = {1, 1, 1};
  oc_dra_options options = {.size = sizeof options, .metadata = "one"};
  snprintf(path, sizeof path, "%s/array", scratch);
  options.path = path;
  options.chunk = none;
  EXPECT(oc_dra_create(world, OC_FLOAT64, 2, shape, &options, &array) == EINVAL);
  options.chunk = NULL;
  EXPECT(oc_dra_create(world, OC_FLOAT64, 2, shape, &options, &array) == OC_OK);
  EXPECT(oc_dra_inquire(array, NULL, NULL, NULL, chunk) == OC_OK && chunk[0] > 0);
  put_rows(memory);
  EXPECT(oc_dra_write_all_async(array, none, shape, memory, none, shape, NULL, &request) == OC_OK);
  EXPECT(oc_wait(request, NULL) == OC_OK);
  EXPECT(oc_dra_get(array, none, shape, found, NULL) == OC_OK && has_values(found));
  EXPECT(oc_world_barrier(world) == OC_OK);
  EXPECT(oc_dra_acc(array, begin, end, line, NULL, NULL) == OC_OK && oc_dra_sync(array) == OC_OK);
  EXPECT(oc_world_barrier(world) == OC_OK);
  EXPECT(oc_dra_prefetch(array, begin, end) == OC_OK && oc_dra_get(array, begin, end, line, NULL) == OC_OK);
  EXPECT(line[0] == value_at(2, 3) + size);
  EXPECT(oc_dra_flush(array, "two") == OC_OK && oc_dra_close(array) == OC_OK && oc_dra_close(array) == EBADF);

  EXPECT(oc_dra_open(world, path, 1, &array) == OC_OK);
  EXPECT(oc_dra_metadata(array, text, sizeof text, &bytes) == OC_OK && bytes == 3 && !strcmp(text, "two"));
  EXPECT(oc_ga_create(world, OC_FLOAT64, 2, other_shape, NULL, &back) == OC_OK);
  EXPECT(oc_dra_read_all_async(array, none, shape, back, none, other_shape, turned, &request) == OC_OK);
  for (i = 0; i < rows; ++i) memset(found[i], 0, sizeof found[i]);
  EXPECT(oc_dra_read_blocks_all_async(array, none, shape, found, NULL, &request_2) == OC_OK);
  EXPECT(oc_wait(request_2, NULL) == OC_OK && oc_wait(request, NULL) == OC_OK);
  EXPECT(found[2][2] == value_at(2, 2) && found[2][3] == value_at(2, 3) + size);
  EXPECT(oc_ga_sync(back) == OC_OK);
  begin[0] = 7, begin[1] = 5, end[0] = 8, end[1] = 6;
  EXPECT(oc_ga_get(back, begin, end, line, NULL) == OC_OK && line[0] == value_at(5, 7));
  /* One process passes no array, or a box outside of it: all get the error. */
  EXPECT(oc_dra_write_all(array, none, shape, rank == size - 1 ? 999 : memory, none, shape, NULL) == EBADF);
  EXPECT(oc_dra_write_all(array, none, shape, memory, none, begin, NULL) == EINVAL);
  EXPECT(oc_dra_write_blocks_all(array, none, shape, rank == 0 ? NULL : found, NULL) == EINVAL);
  EXPECT(oc_dra_delete(array) == OC_OK && oc_dra_open(world, path, 0, &array) == ENOENT);
  EXPECT(strstr(oc_last_error(), path) != NULL);
  EXPECT(oc_ga_close(back) == OC_OK && oc_ga_close(memory) == OC_OK);
}

/* The world commits what the program leaves open. */
static void arrays_left_open(void) {
  const int64_t tiles[1] = {1}, boundaries[2] = {0, 2}, extent[1] = {4}, first[1] = {0}, last[1] = {4};
  const unsigned char nonzero[1] = {1};
  oc_dra_options options = {.size = sizeof options, .overwrite = 1};
  const char* const names[2] = {"left_open.dra", "left_open.sparse"};
  double values[4] = {1, 2, 3, 4}, found[4] = {0, 0, 0, 0};
  int part = 0, arrays[2] = {0, 0};
  EXPECT(oc_world_split(world, 0, 0, &part) == OC_OK);
  options.path = names[0];
  EXPECT(oc_dra_create(part, OC_FLOAT64, 1, extent, &options, &arrays[0]) == OC_OK);
  options.path = names[1];
  EXPECT(oc_sparse_create(part, OC_FLOAT64, 1, tiles, boundaries, nonzero, &options, &arrays[1]) == OC_OK);
  if (rank == 0) {
    EXPECT(oc_dra_put(arrays[0], first, last, values, NULL) == OC_OK);
    EXPECT(oc_sparse_put(arrays[1], first, values, 2 * sizeof values[0]) == OC_OK);
  }
  EXPECT(oc_world_barrier(part) == OC_OK && oc_world_close(part) == OC_OK);
  EXPECT(oc_dra_close(arrays[0]) == OC_OK && oc_sparse_close(arrays[1]) == OC_OK);
  EXPECT(oc_dra_open(world, names[0], 1, &arrays[0]) == OC_OK);
  EXPECT(oc_dra_get(arrays[0], first, last, found, NULL) == OC_OK && found[3] == 4);
  EXPECT(oc_world_barrier(world) == OC_OK && oc_dra_delete(arrays[0]) == OC_OK);
  EXPECT(oc_sparse_open(world, names[1], 1, &arrays[1]) == OC_OK);
  EXPECT(oc_sparse_get(arrays[1], first, found, 2 * sizeof found[0]) == OC_OK && found[1] == 2);
  EXPECT(oc_world_barrier(world) == OC_OK && oc_sparse_delete(arrays[1]) == OC_OK);
}

static void block_sparse_arrays(void) {
  const int64_t tiles[2] = {2, 2}, boundaries[6] = {0, 3, 5, 0, 2, 4}, there[2] = {1, 0}, zero[2] = {0, 1};
  const unsigned char nonzero[4] = {1, 0, 1, 1};
  int array = 0, owner = -2;
  int64_t begin[2], end[2], count = 0, request = 0;
  double tile[4] = {1, 2, 3, 4}, found[6] = {9, 9, 9, 9, 9, 9};
  EXPECT(oc_sparse_create(world, OC_FLOAT64, 2, tiles, boundaries, nonzero, NULL, &array) == OC_OK);
  EXPECT(oc_sparse_inquire(array, NULL, NULL, begin, end, &count) == OC_OK && begin[0] == 5 && count == 3);
  EXPECT(oc_sparse_tile(array, there, begin, end, &owner) == OC_OK && begin[0] == 3 && end[1] == 2);
  EXPECT(owner == 1 % size && oc_sparse_tile(array, zero, NULL, NULL, &owner) == OC_OK && owner == -1);
  EXPECT(oc_sparse_acc(array, there, tile, sizeof tile, NULL) == OC_OK && oc_sparse_sync(array) == OC_OK);
  EXPECT(oc_world_barrier(world) == OC_OK && oc_sparse_prefetch(array, there) == OC_OK);
  EXPECT(oc_sparse_get_async(array, there, found, sizeof tile, &request) == OC_OK &&
         oc_wait(request, NULL) == OC_OK);
  EXPECT(found[3] == 4 * size && found[4] == 9);
  EXPECT(oc_sparse_get(array, zero, found, sizeof found) == OC_OK && found[0] == 0 && found[5] == 0);
  EXPECT(oc_sparse_put(array, zero, found, sizeof found) == EINVAL);
  EXPECT(oc_sparse_put(array, there, found, 8) == EINVAL);
  EXPECT(oc_sparse_close(array) == OC_OK && oc_sparse_close(array) == EBADF);
}

/* Adds the process number that the header has to what is registered, and replies with the payload reversed.
 */
static int reverse(void* context, oc_call_arguments* call) {
  int64_t i;
  if (call->payload_bytes == 0) return ENODATA;
  if (call->payload_bytes > call->max_reply_bytes) return EMSGSIZE;
  *(int*)context = *(const int*)call->header;
  for (i = 0; i < call->payload_bytes; ++i)
    ((char*)call->reply)[i] = ((const char*)call->payload)[call->payload_bytes - 1 - i];
  call->reply_bytes = call->payload_bytes;
  return OC_OK;
}

static void calls(void) {
  int told = -1, other = (rank + 1) % size;
  int64_t procedure = -1, found = -2, request = 0, bytes = -1;
  char reply[8] = "";
  EXPECT(oc_call_register(world, "reverse", reverse, &told, 0, &procedure) == OC_OK);
  EXPECT(oc_call_find(world, "reverse", &found) == OC_OK && found == procedure);
  EXPECT(oc_call_find(world, "no such", &found) == ENOENT);
  EXPECT(oc_call_register(world, "reverse", reverse, &told, 0, &found) == EEXIST);
  EXPECT(oc_call_async(world, other, procedure, &rank, sizeof rank, "abc", 3, reply, sizeof reply,
                       &request) == OC_OK);
  EXPECT(oc_wait(request, &bytes) == OC_OK && bytes == 3 && memcmp(reply, "cba", 3) == 0);
  EXPECT(oc_call_async(world, other, procedure, &rank, sizeof rank, NULL, 0, reply, sizeof reply, &request) ==
         OC_OK);
  EXPECT(oc_wait(request, &bytes) == ENODATA);
  EXPECT(oc_call_async(world, other, procedure, &rank, sizeof rank, "abc", 3, reply, 1, &request) == OC_OK);
  EXPECT(oc_wait(request, &bytes) == EMSGSIZE);
  EXPECT(oc_call_async(world, size, procedure, NULL, 0, NULL, 0, NULL, 0, &request) == EINVAL);
  EXPECT(oc_world_barrier(world) == OC_OK && told == (rank + size - 1) % size);
  EXPECT(oc_call_unregister(world, procedure) == OC_OK);
  EXPECT(oc_call_find(world, "reverse", &found) == ENOENT);
}

static void worlds(void) {
  int part = 0, its_rank = -1, its_size = -1, counter = 0, lock = 0, i;
  int64_t before = -1, numbers[2] = {0, 0}, total = 0;
  double values[2];
  EXPECT(oc_world_split(world, rank % 2, -rank, &part) == OC_OK && part > 0);
  EXPECT(oc_world_rank(part, &its_rank, &its_size) == OC_OK && its_size == (size + 1 - rank % 2) / 2);
  EXPECT(its_rank == its_size - 1 - rank / 2);
  EXPECT(oc_world_close(part) == OC_OK);
  EXPECT(oc_world_split(world, rank == 0 ? -1 : 0, 0, &part) == OC_OK && (part == 0) == (rank == 0));
  if (part) EXPECT(oc_world_close(part) == OC_OK);
  EXPECT(oc_counter_create(world, &counter) == OC_OK);
  for (i = 0; i < 10; ++i)
    EXPECT(oc_counter_next(counter, 1, &before) == OC_OK && (numbers[0] += before) >= 0);
  numbers[1] = rank;
  EXPECT(oc_world_reduce(world, OC_INT64, 2, numbers, OC_SUM) == OC_OK);
  total = 10 * size;
  EXPECT(numbers[0] == total * (total - 1) / 2 && numbers[1] == size * (size - 1) / 2);
  values[0] = values[1] = rank + 0.5;
  EXPECT(oc_world_reduce(world, OC_FLOAT64, 1, values, OC_MAX) == OC_OK && values[0] == size - 0.5);
  EXPECT(oc_world_reduce(world, OC_FLOAT64, 1, values + 1, OC_MIN) == OC_OK && values[1] == 0.5);
  EXPECT(oc_world_reduce(world, OC_FLOAT64, 1, values, rank == 0 ? 7 : OC_MAX) == EINVAL);
  EXPECT(oc_counter_close(counter) == OC_OK && oc_counter_next(counter, 1, &before) == EBADF);
  EXPECT(oc_lock_create(world, &lock) == OC_OK && oc_lock_unlock(lock) == EPERM);
  EXPECT(oc_lock_lock(lock) == OC_OK && oc_lock_unlock(lock) == OC_OK && oc_lock_close(lock) == OC_OK);
}

#include "checkpoints.h"
#include "contractions.h"
#include "transfers.h"

static void what_differs_is_an_error_at_all(void) {
  int64_t other_shape[2] = {rows, columns};
  int array = 0;
  other_shape[1] += rank == size - 1;
  EXPECT(oc_ga_create(world, OC_FLOAT64, 2, other_shape, NULL, &array) == (size > 1 ? EINVAL : OC_OK));
  if (size == 1) EXPECT(oc_ga_close(array) == OC_OK);
  EXPECT(oc_ga_create(world, rank == 0 ? 77 : OC_FLOAT64, 2, shape, NULL, &array) == EINVAL);
  EXPECT(oc_ga_create(world, OC_FLOAT64, 9, shape, NULL, &array) == EINVAL);
  EXPECT(oc_dra_create(world, OC_FLOAT64, 2, rank == 0 ? NULL : shape, NULL, &array) == EINVAL);
  EXPECT(oc_dra_open(world, rank == 0 ? NULL : "/x", 0, &array) == EINVAL);
  EXPECT(oc_world_split(world, 0, 0, rank == 0 ? NULL : &array) == EINVAL);
  EXPECT(oc_counter_create(world, rank == 0 ? NULL : &array) == EINVAL);
}

int main(int count, char** arguments) {
  int given = 0, all = 0;
  oc_world_options options = {.size = sizeof options, .memory_bytes = 64 << 20};
  MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &given);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && !mkdtemp(scratch)) return 1;
  MPI_Bcast(scratch, sizeof scratch, MPI_CHAR, 0, MPI_COMM_WORLD);
  options.size = rank == 0 ? 1 : sizeof options;
  EXPECT(oc_world_job(&options, &world) == EINVAL);
  options.size = sizeof options;
  EXPECT(oc_world_job(&options, &world) == OC_OK);
  EXPECT(oc_world_rank(world, &rank, &size) == OC_OK);
  global_arrays_of_all_distributions();
  products();
  single_elements();
  disk_arrays();
  block_sparse_arrays();
  arrays_left_open();
  calls();
  worlds();
  asynchronous_transfers();
  kept_block_sparse_arrays();
  handles_that_are_none();
  options_of_older_programs();
  types_that_do_not_fit();
  checkpoints_of_all_kinds();
  the_previous_checkpoint_stays();
  what_differs_is_an_error_at_all();
  products_of_arrays_anywhere();
  expressions_of_all_kinds();
  no_elements();
  plans_that_do_not_fit();
  EXPECT(oc_world_close(world) == OC_OK);
  EXPECT(oc_world_close(world) == EBADF && oc_world_barrier(world) == EBADF);
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) remove_all(scratch);
  if (rank == 0) printf("%d failed\n", all);
  MPI_Finalize();
  return all != 0;
}
