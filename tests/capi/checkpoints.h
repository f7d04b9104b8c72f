/* Checkpoints from C: a part of arrays_mpi_program.c. */
#pragma once

static void checkpoint_path(char* path, size_t bytes, const char* name) {
  snprintf(path, bytes, "%s/%s", scratch, name);
}

/* Saves a checkpoint of one global array and a number, and returns the code. */
static int save_checkpoint(const char* path, int array, double* energy, const char* metadata) {
  int saving = 0;
  EXPECT(oc_checkpoint_begin(world, path, NULL, &saving) == OC_OK && saving > 0);
  EXPECT(oc_checkpoint_add_ga(saving, "t2", array) == OC_OK);
  EXPECT(oc_checkpoint_add_values(saving, "energy", OC_FLOAT64, 0, NULL, energy) == OC_OK);
  return oc_checkpoint_commit(saving, metadata);
}

static void checkpoints_of_all_kinds(void) {
  char path[96], text[32] = "", name[8];
  const int64_t list_shape[2] = {2, 3}, nothing_shape[1] = {0};
  const int32_t list[6] = {3, 1, 4, 1, 5, 9};
  int32_t found_list[6] = {0};
  int array = created(NULL), back = created(NULL), disk = 0, saving = 0, saved = 0, count = 0;
  int kind = -1, type = 0, dimensions = -1, opened = 0;
  int64_t its_shape[OC_MAX_RANK] = {0}, bytes = -1;
  double energy = -76.25, found_energy = 0, found[rows][columns];
  oc_checkpoint_options options = {.size = sizeof options, .codec = "blosc2-lz4"};
  checkpoint_path(path, sizeof path, "all");
  put_rows(array);
  EXPECT(oc_dra_create(world, OC_FLOAT64, 2, shape, NULL, &disk) == OC_OK);
  EXPECT(oc_dra_write_all(disk, none, shape, array, none, shape, NULL) == OC_OK);

  EXPECT(oc_checkpoint_open(world, path, &saved) == ENOENT && strstr(oc_last_error(), path) != NULL);
  EXPECT(oc_checkpoint_begin(world, path, &options, &saving) == OC_OK);
  EXPECT(oc_checkpoint_add_ga(saving, "t2", array) == OC_OK);
  EXPECT(oc_checkpoint_add_dra(saving, "on.disk", disk) == OC_OK);
  EXPECT(oc_checkpoint_add_values(saving, "list", OC_INT32, 2, list_shape, list) == OC_OK);
  EXPECT(oc_checkpoint_add_values(saving, "energy", OC_FLOAT64, 0, NULL, &energy) == OC_OK);
  EXPECT(oc_checkpoint_add_values(saving, "nothing", OC_INT64, 1, nothing_shape, NULL) == OC_OK);
  EXPECT(oc_checkpoint_commit(saving, "cycle \"12\"\n") == OC_OK);
  EXPECT(oc_checkpoint_commit(saving, "") == EBADF && oc_checkpoint_abandon(saving) == EBADF);

  EXPECT(oc_checkpoint_open(world, path, &saved) == OC_OK && saved > 0);
  EXPECT(oc_checkpoint_metadata(saved, text, sizeof text, &bytes) == OC_OK && bytes == 11);
  EXPECT(strcmp(text, "cycle \"12\"\n") == 0);
  EXPECT(oc_checkpoint_count(saved, &count) == OC_OK && count == 5);
  EXPECT(oc_checkpoint_name(saved, 1, name, sizeof name) == OC_OK && strcmp(name, "on.disk") == 0);
  EXPECT(oc_checkpoint_name(saved, 5, name, sizeof name) == EINVAL);
  EXPECT(oc_checkpoint_inquire(saved, "list", &kind, &type, &dimensions, its_shape) == OC_OK);
  EXPECT(kind == OC_KEPT_VALUES && type == OC_INT32 && dimensions == 2 && its_shape[1] == 3);
  EXPECT(oc_checkpoint_inquire(saved, "energy", &kind, NULL, &dimensions, NULL) == OC_OK && dimensions == 0);
  EXPECT(oc_checkpoint_inquire(saved, "t1", NULL, NULL, NULL, NULL) == ENOENT);
  EXPECT(strstr(oc_last_error(), "'t1'") != NULL);
  EXPECT(oc_checkpoint_read_ga(saved, "t2", back) == OC_OK && oc_ga_sync(back) == OC_OK);
  EXPECT(oc_ga_get(back, none, shape, found, NULL) == OC_OK && has_values(found));
  EXPECT(oc_checkpoint_read_values(saved, "list", found_list, sizeof found_list) == OC_OK);
  EXPECT(memcmp(found_list, list, sizeof list) == 0);
  EXPECT(oc_checkpoint_read_values(saved, "energy", &found_energy, 8) == OC_OK && found_energy == energy);
  EXPECT(oc_checkpoint_read_values(saved, "nothing", NULL, 0) == OC_OK);
  EXPECT(oc_checkpoint_open_dra(saved, "on.disk", &opened) == OC_OK);
  memset(found, 0, sizeof found);
  EXPECT(oc_dra_get(opened, none, shape, found, NULL) == OC_OK && has_values(found));
  EXPECT(oc_dra_put(opened, none, shape, found, NULL) == EROFS && oc_dra_close(opened) == OC_OK);
  /* What does not fit at one process is an error at all processes. */
  EXPECT(oc_checkpoint_read_values(saved, "list", found_list, rank == 0 ? 8 : sizeof found_list) == EINVAL);
  EXPECT(oc_checkpoint_read_values(saved, rank == size - 1 ? "t1" : "list", found_list, 24) != OC_OK);
  EXPECT(oc_checkpoint_read_values(saved, rank == 0 ? NULL : "list", found_list, 24) != OC_OK);
  EXPECT(oc_checkpoint_read_ga(saved, "t2", rank == 0 ? 4711 : back) == EBADF);
  EXPECT(oc_checkpoint_close(saved) == OC_OK && oc_checkpoint_close(saved) == EBADF);
  EXPECT(oc_checkpoint_count(saved, &count) == EBADF);
  EXPECT(oc_dra_close(disk) == OC_OK && oc_ga_close(back) == OC_OK && oc_ga_close(array) == OC_OK);
}

static void the_previous_checkpoint_stays(void) {
  char path[96], text[8] = "";
  int array = created(NULL), saving = 0, other = 0, first = 0, second = 0;
  double energy = 1, found = 0;
  checkpoint_path(path, sizeof path, "again");
  EXPECT(save_checkpoint(path, array, &energy, "one") == OC_OK);
  EXPECT(oc_checkpoint_open(world, path, &first) == OC_OK);
  energy = 2;
  EXPECT(save_checkpoint(path, array, &energy, "two") == OC_OK);
  /* An open checkpoint stays as it was. */
  EXPECT(oc_checkpoint_read_values(first, "energy", &found, 8) == OC_OK && found == 1);
  EXPECT(oc_checkpoint_open(world, path, &second) == OC_OK);
  EXPECT(oc_checkpoint_read_values(second, "energy", &found, 8) == OC_OK && found == 2);
  EXPECT(oc_checkpoint_close(first) == OC_OK && oc_checkpoint_close(second) == OC_OK);

  /* Saving fails if one process could not add something, if names differ, and if text is not UTF-8. */
  EXPECT(oc_checkpoint_begin(world, path, NULL, &saving) == OC_OK);
  EXPECT(oc_checkpoint_add_ga(saving, "t2", rank == 0 ? 4711 : array) == (rank == 0 ? EBADF : OC_OK));
  EXPECT(oc_checkpoint_commit(saving, "three") == EBADF && strstr(oc_last_error(), "4711") != NULL);
  EXPECT(oc_checkpoint_begin(world, path, NULL, &saving) == OC_OK);
  EXPECT(oc_checkpoint_add_ga(saving, rank == 0 ? "t1" : "t2", array) == OC_OK);
  EXPECT(oc_checkpoint_commit(saving, "three") == (size > 1 ? EINVAL : OC_OK));
  if (size == 1) EXPECT(save_checkpoint(path, array, &energy, "two") == OC_OK);
  EXPECT(save_checkpoint(path, array, &energy, "\xff") == EINVAL);
  EXPECT(oc_checkpoint_begin(world, path, NULL, &saving) == OC_OK);
  EXPECT(oc_checkpoint_add_ga(saving, "../t2", array) == EINVAL && oc_checkpoint_abandon(saving) == OC_OK);
  EXPECT(oc_checkpoint_begin(world, path, NULL, &saving) == OC_OK);
  EXPECT(oc_checkpoint_add_ga(saving, "t2", array) == OC_OK);
  EXPECT(oc_checkpoint_add_values(saving, "t2", OC_FLOAT64, 0, NULL, &energy) == EINVAL);
  EXPECT(oc_checkpoint_commit(saving, NULL) == EINVAL && strstr(oc_last_error(), "twice") != NULL);
  EXPECT(oc_checkpoint_begin(world, rank == 0 ? NULL : path, NULL, &saving) == (rank == 0 ? EINVAL : OC_OK));
  EXPECT(oc_checkpoint_commit(saving, NULL) == EINVAL);
  EXPECT(oc_checkpoint_begin(world, "/nonexistent/checkpoint", NULL, &saving) == OC_OK);
  EXPECT(oc_checkpoint_commit(saving, NULL) == ENOENT);
  EXPECT(oc_checkpoint_begin(0, path, NULL, &saving) == EBADF);
  EXPECT(oc_checkpoint_open(world, rank == 0 ? NULL : path, &second) == EINVAL);
  EXPECT(oc_checkpoint_open(world, path, &second) == OC_OK);
  EXPECT(oc_checkpoint_metadata(second, text, sizeof text, NULL) == OC_OK && strcmp(text, "two") == 0);
  EXPECT(oc_checkpoint_close(second) == OC_OK);

  /* A disk array is not a checkpoint, and no checkpoint replaces it. */
  checkpoint_path(path, sizeof path, "array");
  {
    oc_dra_options options = {.size = sizeof options, .path = path, .metadata = "no JSON"};
    EXPECT(oc_dra_create(world, OC_FLOAT64, 2, shape, &options, &other) == OC_OK);
    EXPECT(oc_dra_close(other) == OC_OK);
  }
  EXPECT(oc_checkpoint_open(world, path, &second) == EINVAL);
  EXPECT(save_checkpoint(path, array, &energy, "") == EEXIST);
  EXPECT(oc_dra_open(world, path, 1, &other) == OC_OK && oc_dra_delete(other) == OC_OK);
  EXPECT(oc_ga_close(array) == OC_OK);
}
