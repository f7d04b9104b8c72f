/* HDF5's subfiling for bench dra: takes the commands of _dra_worker.py (see there) from the standard input of
 * rank 0 and answers in the same way. Each process moves an equal part of the rows. Arguments: directory,
 * file of the section, side of the section, side of the array, side of a chunk (0: no chunks), bytes of a
 * stripe, number of subfiles. */
#define _GNU_SOURCE
#include <hdf5.h>

#include "_dra_program.h"

#ifndef H5_HAVE_SUBFILING_VFD
#error "this HDF5 has no subfiling"
#endif

static int size, chunk, subfiles;
static long stripe, first, rows; /* the own rows of the section */
static double *source, *target;
static hid_t access_list, file, disk;
static char path[512];

static hid_t check(hid_t found, const char* what) {
  if (found < 0) {
    fprintf(stderr, "%s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return found;
}

static hid_t subfiling(void) {
  H5FD_subfiling_config_t settings;
  hid_t list = check(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
  check(H5Pset_mpi_params(list, MPI_COMM_WORLD, MPI_INFO_NULL), "H5Pset_mpi_params");
  check(H5Pget_fapl_subfiling(list, &settings), "H5Pget_fapl_subfiling");
  settings.shared_cfg.stripe_count = subfiles;
  settings.shared_cfg.stripe_size = stripe;
  check(H5Pset_fapl_subfiling(list, &settings), "H5Pset_fapl_subfiling");
  check(H5Pset_libver_bounds(list, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), "H5Pset_libver_bounds");
  return list;
}

static void create(void) {
  hsize_t shape[2] = {(hsize_t)array_side, (hsize_t)array_side}, pieces[2] = {(hsize_t)chunk, (hsize_t)chunk};
  hid_t space = check(H5Screate_simple(2, shape, NULL), "H5Screate_simple");
  hid_t list = check(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
  check(H5Pset_fill_time(list, H5D_FILL_TIME_NEVER), "H5Pset_fill_time");
  if (chunk > 0) check(H5Pset_chunk(list, 2, pieces), "H5Pset_chunk");
  file = check(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access_list), "H5Fcreate");
  disk = check(H5Dcreate2(file, "array", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, list, H5P_DEFAULT),
               "H5Dcreate2");
  H5Pclose(list);
  H5Sclose(space);
}

static void open_array(unsigned way) {
  file = check(H5Fopen(path, way, access_list), "H5Fopen");
  disk = check(H5Dopen2(file, "array", H5P_DEFAULT), "H5Dopen2");
}

static void close_array(void) {
  check(H5Dclose(disk), "H5Dclose");
  check(H5Fclose(file), "H5Fclose");
}

/* Moves `count` rows of `columns` elements between the array and memory; without rows a process takes part.
 */
static void move(int writing, long row, long column, long count, long columns, double* memory) {
  hsize_t begin[2] = {(hsize_t)row, (hsize_t)column}, shape[2] = {(hsize_t)count, (hsize_t)columns};
  hsize_t least[2] = {(hsize_t)(count > 0 ? count : 1), (hsize_t)columns};
  hid_t of_disk = check(H5Dget_space(disk), "H5Dget_space");
  hid_t of_memory = check(H5Screate_simple(2, least, NULL), "H5Screate_simple");
  if (count > 0) {
    check(H5Sselect_hyperslab(of_disk, H5S_SELECT_SET, begin, NULL, shape, NULL), "H5Sselect_hyperslab");
  } else {
    check(H5Sselect_none(of_disk), "H5Sselect_none");
    check(H5Sselect_none(of_memory), "H5Sselect_none");
  }
  check(writing ? H5Dwrite(disk, H5T_NATIVE_DOUBLE, of_memory, of_disk, H5P_DEFAULT, memory)
                : H5Dread(disk, H5T_NATIVE_DOUBLE, of_memory, of_disk, H5P_DEFAULT, memory),
        "transfer");
  H5Sclose(of_memory);
  H5Sclose(of_disk);
}

static int all(int good) {
  int each = good;
  MPI_Allreduce(&each, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return good;
}

static double started(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  return now();
}

static void answer(double start, double end, int good) {
  if (rank == 0) printf("%.9f %.9f %d\n", start, end, good);
  fflush(stdout);
}

static void write_parts(int opening, long row, long column, int parts) {
  double start = started();
  int i;
  if (opening)
    open_array(H5F_ACC_RDWR);
  else
    create();
  for (i = 0; i < parts; ++i)
    move(1, row + first + i / 2 * section, column + i % 2 * section, rows, section, source);
  close_array();
  sync_files();
  answer(start, now(), 1);
}

static void read_section(long row, long column) {
  double start, end;
  memset(target, 0, 8 * (size_t)(rows * section));
  start = started();
  open_array(H5F_ACC_RDONLY);
  move(0, row + first, column, rows, section, target);
  close_array();
  end = started();
  answer(start, end, all(memcmp(source, target, 8 * (size_t)(rows * section)) == 0));
}

static void slice(int along_rows, long index, int length) {
  double *values = calloc((size_t)length, 8), start = started(), end;
  if (along_rows)
    move(0, 0, index, rank == 0 ? length : 0, 1, values);
  else
    move(0, index, 0, rank == 0, length, values);
  end = started();
  answer(start, end, all(rank != 0 || is_slice(values, along_rows, index, length)));
  free(values);
}

static void obey(const char* line) {
  char command[16] = "", axis[16] = "";
  long row = 0, column = 0;
  if (sscanf(line, "%15s", command) != 1) return;
  if (strcmp(command, "slice") == 0) {
    sscanf(line, "%*s %15s %ld %ld", axis, &row, &column);
    slice(strcmp(axis, "tall") == 0, row, (int)column);
    return;
  }
  sscanf(line, "%*s %ld %ld", &row, &column);
  if (strcmp(command, "write") == 0 || strcmp(command, "rewrite") == 0) {
    write_parts(strcmp(command, "rewrite") == 0, row, column, 1);
  } else if (strcmp(command, "fill") == 0) {
    write_parts(0, 0, 0, 4);
  } else if (strcmp(command, "read") == 0) {
    read_section(row, column);
  } else if (strcmp(command, "open") == 0) {
    open_array(H5F_ACC_RDONLY);
    answer(0, 0, 1);
  } else if (strcmp(command, "close") == 0) {
    close_array();
    answer(0, 0, 1);
  }
}

static void read_source(void) {
  FILE* data = fopen(source_file, "rb");
  size_t elements = (size_t)(rows * section);
  source = malloc(8 * elements);
  target = malloc(8 * elements);
  check(
      data && fseek(data, 8 * first * section, SEEK_SET) == 0 && fread(source, 8, elements, data) == elements
          ? 0
          : -1,
      source_file);
  fclose(data);
}

int main(int count, char** arguments) {
  char line[256] = "";
  int threads;
  if (count != 8) return 2;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &threads);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check(threads == MPI_THREAD_MULTIPLE ? 0 : -1, "MPI has no MPI_THREAD_MULTIPLE");
  directory = arguments[1];
  source_file = arguments[2];
  section = atoi(arguments[3]);
  array_side = atol(arguments[4]);
  chunk = atoi(arguments[5]);
  stripe = atol(arguments[6]);
  subfiles = atoi(arguments[7]);
  snprintf(path, sizeof path, "%s/array", directory);
  first = (long)section * rank / size;
  rows = (long)section * (rank + 1) / size - first;
  read_source();
  setenv(H5FD_SUBFILING_IOC_PER_NODE, arguments[7], 1); /* processes that write, each a subfile or several */
  access_list = subfiling();
  answer(0, 0, 1);
  for (next(line, sizeof line, 200); strncmp(line, "quit", 4) != 0; next(line, sizeof line, 200)) obey(line);
  H5Pclose(access_list);
  H5close();
  MPI_Finalize();
  return 0;
}
