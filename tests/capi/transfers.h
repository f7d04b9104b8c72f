/* Asynchronous transfers of arrays, requests of several kinds together, and invalid handles: a part of
 * arrays_mpi_program.c. */
#pragma once

static void asynchronous_transfers(void) {
  const int64_t row_begin[2] = {0, 0};
  int64_t requests[4], row_end[2] = {1, columns}, bytes = -1;
  int ga = created(NULL), dra = 0, count = 0, index = -1, i;
  double row[columns], found[columns] = {0}, other[columns] = {0}, alpha = 3;
  EXPECT(oc_element_bytes(OC_COMPLEX64) == 8 && oc_element_bytes(0) == 0);
  EXPECT(oc_dra_create(world, OC_FLOAT64, 2, shape, NULL, &dra) == OC_OK);
  for (i = 0; i < columns; ++i) row[i] = i + 1;
  if (rank == 0) {
    EXPECT(oc_ga_put_async(ga, row_begin, row_end, row, NULL, &requests[0]) == OC_OK);
    EXPECT(oc_dra_put_async(dra, row_begin, row_end, row, NULL, &requests[1]) == OC_OK);
    EXPECT(oc_wait_all(2, requests) == OC_OK);
  }
  EXPECT(oc_ga_sync(ga) == OC_OK && oc_dra_sync(dra) == OC_OK && oc_world_barrier(world) == OC_OK);
  EXPECT(oc_ga_acc_async(ga, row_begin, row_end, row, NULL, &alpha, &requests[0]) == OC_OK);
  EXPECT(oc_dra_acc_async(dra, row_begin, row_end, row, NULL, NULL, &requests[1]) == OC_OK);
  EXPECT(oc_wait(requests[1], NULL) == OC_OK && oc_wait(requests[0], NULL) == OC_OK);
  EXPECT(oc_ga_sync(ga) == OC_OK && oc_dra_sync(dra) == OC_OK && oc_world_barrier(world) == OC_OK);
  EXPECT(oc_ga_get_async(ga, row_begin, row_end, found, NULL, &requests[0]) == OC_OK);
  EXPECT(oc_dra_get_async(dra, row_begin, row_end, other, NULL, &requests[1]) == OC_OK);
  for (count = 2; count > 0; --count) {
    EXPECT(oc_wait_any(count, requests, &index) == OC_OK && index >= 0 && index < count);
    EXPECT(oc_wait(requests[index], NULL) == OC_OK);
    requests[index] = requests[count - 1];
  }
  EXPECT(found[4] == 5 + 3.0 * 5 * size && other[4] == 5 + 5.0 * size);
  EXPECT(oc_wait_any(0, requests, &index) == EINVAL && oc_wait_any(1, requests, NULL) == EINVAL);
  EXPECT(oc_dra_stored_bytes(dra, &bytes) == OC_OK && bytes > 0);
  EXPECT(oc_world_barrier(world) == OC_OK);

  /* Blocks: each process writes a row of its own, and reads it back. */
  row_end[0] = rank + 1;
  {
    const int64_t mine[2] = {rank, 0};
    double block[columns], back[rows][columns];
    for (i = 0; i < columns; ++i) block[i] = value_at(rank, i);
    EXPECT(oc_dra_write_blocks_all_async(dra, mine, row_end, block, NULL, &requests[0]) == OC_OK);
    EXPECT(oc_wait(requests[0], NULL) == OC_OK);
    memset(block, 0, sizeof block);
    EXPECT(oc_dra_read_blocks_all(dra, mine, row_end, block, NULL) == OC_OK && block[3] == value_at(rank, 3));
    EXPECT(oc_dra_read_all(dra, none, shape, ga, none, shape, NULL) == OC_OK);
    EXPECT(oc_ga_sync(ga) == OC_OK && oc_ga_get(ga, none, shape, back, NULL) == OC_OK);
    for (i = 0; i < size; ++i) EXPECT(back[i][7] == value_at(i, 7));
  }
  EXPECT(oc_dra_close(dra) == OC_OK && oc_ga_close(ga) == OC_OK);
}

static void kept_block_sparse_arrays(void) {
  const int64_t tiles[1] = {2}, boundaries[3] = {0, 3, 5}, first[1] = {0};
  const unsigned char nonzero[2] = {1, 0};
  char path[96], text[16] = "";
  int array = 0, counter = 0;
  int64_t request = 0, bytes = -1, before = -1;
  double tile[3] = {1, 2, 3};
  oc_dra_options options = {.size = sizeof options, .metadata = "one", .path = path};
  snprintf(path, sizeof path, "%s/sparse", scratch);
  EXPECT(oc_sparse_create(world, OC_FLOAT64, 1, tiles, boundaries, nonzero, &options, &array) == OC_OK);
  if (rank == 0) {
    EXPECT(oc_sparse_put_async(array, first, tile, sizeof tile, &request) == OC_OK);
    EXPECT(oc_wait(request, NULL) == OC_OK);
  }
  EXPECT(oc_sparse_sync(array) == OC_OK && oc_world_barrier(world) == OC_OK);
  EXPECT(oc_sparse_acc_async(array, first, tile, sizeof tile, NULL, &request) == OC_OK);
  EXPECT(oc_wait(request, NULL) == OC_OK);
  EXPECT(oc_sparse_flush(array, "two") == OC_OK && oc_sparse_close(array) == OC_OK);
  EXPECT(oc_dra_open(world, path, 0, &array) == OC_OK && oc_dra_close(array) == OC_OK);
  EXPECT(oc_sparse_open(world, path, 1, &array) == OC_OK);
  EXPECT(oc_sparse_metadata(array, text, sizeof text, &bytes) == OC_OK && strcmp(text, "two") == 0);
  EXPECT(oc_sparse_get(array, first, tile, sizeof tile) == OC_OK && tile[1] == 2 + 2 * size);
  EXPECT(oc_sparse_delete(array) == OC_OK && oc_sparse_open(world, path, 0, &array) == ENOENT);
  EXPECT(oc_counter_create(world, &counter) == OC_OK && oc_counter_next(counter, 5, &before) == OC_OK);
  EXPECT(oc_counter_reset(counter) == OC_OK);
  if (rank == 0) EXPECT(oc_counter_next(counter, 1, &before) == OC_OK && before == 0);
  EXPECT(oc_world_barrier(world) == OC_OK && oc_counter_close(counter) == OC_OK);
}

/* Every function that takes a handle is called with one that was never given out. */
static void handles_that_are_none(void) {
  const int64_t begin[2] = {0, 0}, end[2] = {1, 1}, big[2] = {1 << 30, 1 << 20};
  const int no = 4711;
  int array = 0, number = 0, made = 0;
  int64_t request = 0, count = 0;
  double value[4] = {0};
  char text[8];
  oc_dra_options options = {.size = sizeof options};
  EXPECT(oc_ga_inquire(no, NULL, NULL, NULL) == EBADF && oc_ga_distribution(no, 0, &count, &count) == EBADF);
  EXPECT(oc_ga_owner(no, begin, &number) == EBADF && oc_ga_local(no, (void**)text, NULL, NULL) == EBADF);
  EXPECT(oc_ga_get(no, begin, end, value, NULL) == EBADF && oc_ga_put(no, begin, end, value, NULL) == EBADF);
  EXPECT(oc_ga_acc(no, begin, end, value, NULL, NULL) == EBADF);
  EXPECT(oc_ga_get_async(no, begin, end, value, NULL, &request) == EBADF);
  EXPECT(oc_ga_put_async(no, begin, end, value, NULL, &request) == EBADF);
  EXPECT(oc_ga_acc_async(no, begin, end, value, NULL, NULL, &request) == EBADF);
  EXPECT(oc_ga_gather(no, 1, begin, value) == EBADF && oc_ga_scatter(no, 1, begin, value) == EBADF);
  EXPECT(oc_ga_scatter_acc(no, 1, begin, value, NULL) == EBADF);
  EXPECT(oc_ga_read_increment(no, begin, 1, &count) == EBADF && oc_ga_fill(no, NULL) == EBADF);
  EXPECT(oc_ga_copy(no, no) == EBADF && oc_ga_dot(no, no, value) == EBADF && oc_ga_sync(no) == EBADF);
  EXPECT(oc_ga_gemm('N', 'N', NULL, no, no, NULL, no) == EBADF && oc_ga_close(no) == EBADF);
  EXPECT(strstr(oc_last_error(), "4711") != NULL);

  EXPECT(oc_dra_inquire(no, NULL, NULL, NULL, NULL) == EBADF);
  EXPECT(oc_dra_metadata(no, text, sizeof text, NULL) == EBADF && oc_dra_stored_bytes(no, &count) == EBADF);
  EXPECT(oc_dra_write_all(no, begin, end, no, begin, end, NULL) == EBADF);
  EXPECT(oc_dra_read_all(no, begin, end, no, begin, end, NULL) == EBADF);
  EXPECT(oc_dra_write_all_async(no, begin, end, no, begin, end, NULL, &request) == EBADF);
  EXPECT(oc_dra_read_all_async(no, begin, end, no, begin, end, NULL, &request) == EBADF);
  EXPECT(oc_dra_write_blocks_all(no, begin, end, value, NULL) == EBADF);
  EXPECT(oc_dra_read_blocks_all(no, begin, end, value, NULL) == EBADF);
  EXPECT(oc_dra_write_blocks_all_async(no, begin, end, value, NULL, &request) == EBADF);
  EXPECT(oc_dra_read_blocks_all_async(no, begin, end, value, NULL, &request) == EBADF);
  EXPECT(oc_dra_get(no, begin, end, value, NULL) == EBADF &&
         oc_dra_put(no, begin, end, value, NULL) == EBADF);
  EXPECT(oc_dra_acc(no, begin, end, value, NULL, NULL) == EBADF);
  EXPECT(oc_dra_get_async(no, begin, end, value, NULL, &request) == EBADF);
  EXPECT(oc_dra_put_async(no, begin, end, value, NULL, &request) == EBADF);
  EXPECT(oc_dra_acc_async(no, begin, end, value, NULL, NULL, &request) == EBADF);
  EXPECT(oc_dra_prefetch(no, begin, end) == EBADF && oc_dra_sync(no) == EBADF);
  EXPECT(oc_dra_flush(no, NULL) == EBADF && oc_dra_close(no) == EBADF && oc_dra_delete(no) == EBADF);

  EXPECT(oc_sparse_inquire(no, NULL, NULL, NULL, NULL, NULL) == EBADF);
  EXPECT(oc_sparse_tile(no, begin, NULL, NULL, NULL) == EBADF);
  EXPECT(oc_sparse_get(no, begin, value, 8) == EBADF && oc_sparse_put(no, begin, value, 8) == EBADF);
  EXPECT(oc_sparse_acc(no, begin, value, 8, NULL) == EBADF);
  EXPECT(oc_sparse_get_async(no, begin, value, 8, &request) == EBADF);
  EXPECT(oc_sparse_put_async(no, begin, value, 8, &request) == EBADF);
  EXPECT(oc_sparse_acc_async(no, begin, value, 8, NULL, &request) == EBADF);
  EXPECT(oc_sparse_prefetch(no, begin) == EBADF && oc_sparse_sync(no) == EBADF);
  EXPECT(oc_sparse_flush(no, NULL) == EBADF && oc_sparse_metadata(no, text, sizeof text, NULL) == EBADF);
  EXPECT(oc_sparse_close(no) == EBADF && oc_sparse_delete(no) == EBADF);

  EXPECT(oc_checkpoint_add_ga(no, "a", no) == EBADF && oc_checkpoint_add_dra(no, "a", no) == EBADF);
  EXPECT(oc_checkpoint_add_values(no, "a", OC_FLOAT64, 0, NULL, value) == EBADF);
  EXPECT(oc_checkpoint_metadata(no, text, sizeof text, NULL) == EBADF);
  EXPECT(oc_checkpoint_name(no, 0, text, sizeof text) == EBADF);
  EXPECT(oc_checkpoint_inquire(no, "a", NULL, NULL, NULL, NULL) == EBADF);
  EXPECT(oc_checkpoint_read_ga(no, "a", no) == EBADF && oc_checkpoint_open_dra(no, "a", &array) == EBADF);
  EXPECT(oc_checkpoint_read_values(no, "a", value, 8) == EBADF);

  EXPECT(oc_world_rank(no, &number, NULL) == EBADF && oc_world_barrier(no) == EBADF);
  EXPECT(oc_world_split(no, 0, 0, &made) == EBADF && oc_world_close(no) == EBADF);
  EXPECT(oc_world_reduce(no, OC_INT64, 1, &count, OC_SUM) == EBADF);
  EXPECT(oc_counter_create(no, &made) == EBADF && oc_counter_reset(no) == EBADF &&
         oc_counter_close(no) == EBADF);
  EXPECT(oc_lock_create(no, &made) == EBADF && oc_lock_lock(no) == EBADF && oc_lock_unlock(no) == EBADF);
  EXPECT(oc_lock_close(no) == EBADF && oc_call_find(no, "a", &request) == EBADF);
  EXPECT(oc_call_register(no, "a", reverse, NULL, 0, &request) == EBADF &&
         oc_call_unregister(no, 0) == EBADF);
  EXPECT(oc_call_async(no, 0, 0, NULL, 0, NULL, 0, NULL, 0, &request) == EBADF);
  EXPECT(oc_ga_create(no, OC_FLOAT64, 2, shape, NULL, &array) == EBADF);
  EXPECT(oc_dra_create(no, OC_FLOAT64, 2, shape, NULL, &array) == EBADF);
  EXPECT(oc_dra_open(no, "/x", 0, &array) == EBADF && oc_sparse_open(no, "/x", 0, &array) == EBADF);
  EXPECT(oc_wait(no, NULL) == EINVAL && oc_test(no, &number) == EINVAL);

  /* Boxes outside of arrays, more space than the disks have, a directory that does not exist. */
  array = created(NULL);
  {
    const int64_t outside[2] = {rows + 1, columns};
    double all[rows + 1][columns];
    EXPECT(oc_ga_get(array, none, outside, all, NULL) == EINVAL);
    EXPECT(strstr(oc_last_error(), "[0:13, 0:10]") != NULL);
    EXPECT(oc_ga_put(array, none, outside, all, NULL) == EINVAL);
    EXPECT(oc_ga_get(array, none, shape, NULL, NULL) == EINVAL);
    EXPECT(oc_ga_get(array, begin, NULL, value, NULL) == EINVAL);
    EXPECT(oc_ga_owner(array, outside, &number) == EINVAL);
  }
  EXPECT(oc_ga_close(array) == OC_OK);
  EXPECT(oc_dra_create(world, OC_FLOAT64, 2, big, &options, &array) == ENOSPC);
  options.path = "/no/such/directory/array";
  EXPECT(oc_dra_create(world, OC_FLOAT64, 2, shape, &options, &array) == ENOENT);
  EXPECT(strstr(oc_last_error(), "/no/such/directory") != NULL);
}

/* Structures of a program that was compiled with fewer fields: the library reads nothing behind them. */
static void options_of_older_programs(void) {
  const int64_t bad[2] = {-1, -1};
  oc_ga_options ga = {.size = offsetof(oc_ga_options, blocks), .blocks = bad, .begins = bad, .grid = bad};
  oc_dra_options dra = {.size = offsetof(oc_dra_options, chunk), .chunk = bad, .typical = bad, .codec = "x"};
  oc_sf_options sf = {.size = offsetof(oc_sf_options, reserve), .placement = 99, .client_cache_bytes = -1};
  oc_rf_options rf = {.size = offsetof(oc_rf_options, hard_limit_bytes), .records = 3, .placement = 99};
  oc_checkpoint_options kept = {.size = offsetof(oc_checkpoint_options, placement), .placement = 99};
  oc_world_options alone = {.size = offsetof(oc_world_options, scratch), .scratch = "/nonexistent"};
  int handle = 0;
  char path[96];
  ga.distribution = OC_DISTRIBUTION_REGULAR;
  EXPECT(oc_ga_create(world, OC_FLOAT64, 2, shape, &ga, &handle) == OC_OK && oc_ga_close(handle) == OC_OK);
  EXPECT(oc_dra_create(world, OC_FLOAT64, 2, shape, &dra, &handle) == OC_OK && oc_dra_close(handle) == OC_OK);
  EXPECT(oc_sf_create(world, "older", &sf, &handle) == OC_OK && oc_sf_close(handle) == OC_OK);
  EXPECT(oc_rf_create(world, "older", &rf, &handle) == OC_OK && oc_rf_close(handle) == OC_OK);
  EXPECT(oc_world_self(&alone, &handle) == OC_OK && oc_world_close(handle) == OC_OK);
  snprintf(path, sizeof path, "%s/older", scratch);
  EXPECT(oc_checkpoint_begin(world, path, &kept, &handle) == OC_OK && oc_checkpoint_abandon(handle) == OC_OK);
}

/* Operations that a type does not have, transfers between different types, pointers that are NULL, and arrays
 * that were closed. */
static void types_that_do_not_fit(void) {
  const int64_t one[2] = {1, 1};
  int bytes = 0, ints = 0, reals = created(NULL), on_disk = 0, lock = 0, counter = 0;
  int64_t request = 0, before = 0, requests[2] = {0, 4711};
  char value[8] = "";
  EXPECT(oc_ga_create(world, OC_INT8, 2, shape, NULL, &bytes) == OC_OK);
  EXPECT(oc_ga_create(world, OC_INT32, 2, shape, NULL, &ints) == OC_OK);
  EXPECT(oc_dra_create(world, OC_INT8, 2, shape, NULL, &on_disk) == OC_OK);
  EXPECT(oc_ga_acc(bytes, none, one, value, NULL, NULL) == EINVAL);
  EXPECT(strstr(oc_last_error(), "int8") != NULL);
  EXPECT(oc_ga_acc_async(bytes, none, one, value, NULL, NULL, &request) == EINVAL);
  EXPECT(oc_ga_scatter_acc(bytes, 1, none, value, NULL) == EINVAL);
  EXPECT(oc_dra_acc(on_disk, none, one, value, NULL, NULL) == EINVAL);
  EXPECT(oc_ga_read_increment(ints, none, 1, &before) == EINVAL);
  EXPECT(oc_ga_dot(ints, ints, value) == EINVAL && oc_ga_dot(reals, ints, value) == EINVAL);
  EXPECT(oc_ga_dot(reals, reals, NULL) == EINVAL);
  EXPECT(oc_ga_copy(reals, ints) == EINVAL);
  EXPECT(oc_dra_write_all(on_disk, none, shape, reals, none, shape, NULL) == EINVAL);
  EXPECT(oc_ga_get_async(reals, none, one, value, NULL, NULL) == EINVAL);
  EXPECT(oc_dra_put_async(on_disk, none, one, value, NULL, NULL) == EINVAL);
  EXPECT(oc_ga_gather(reals, 1, NULL, value) == EINVAL && oc_ga_gather(reals, -1, none, value) == EINVAL);
  EXPECT(oc_wait_all(2, requests) == EINVAL && oc_wait_all(-1, requests) == EINVAL);
  EXPECT(oc_wait_any(2, requests, &lock) == EINVAL && oc_test(0, NULL) == EINVAL);
  EXPECT(oc_dra_close(on_disk) == OC_OK && oc_dra_prefetch(on_disk, none, one) == EBADF);
  EXPECT(oc_ga_close(bytes) == OC_OK && oc_ga_close(ints) == OC_OK && oc_ga_close(reals) == OC_OK);
  EXPECT(oc_ga_get(reals, none, one, value, NULL) == EBADF);
  EXPECT(strstr(oc_last_error(), "it has ended") != NULL);
  EXPECT(oc_lock_create(world, &lock) == OC_OK && oc_lock_close(lock) == OC_OK);
  EXPECT(oc_lock_lock(lock) == EBADF && oc_lock_close(lock) == EBADF);
  EXPECT(oc_counter_create(world, &counter) == OC_OK && oc_counter_next(counter, 1, NULL) == EINVAL);
  EXPECT(oc_counter_close(counter) == OC_OK && oc_counter_reset(counter) == EBADF);
}
