/* Contractions, for arrays_mpi_program.c. */

enum { left_rows = 23, inner_length = 17, right_columns = 19 };

static double left_matrix[left_rows][inner_length], right_matrix[inner_length][right_columns];
static double product_matrix[left_rows][right_columns];

static void make_matrices(void) {
  int i, j, k;
  for (i = 0; i < left_rows; ++i)
    for (k = 0; k < inner_length; ++k) left_matrix[i][k] = (i * 7 + k * 3) % 11 - 5;
  for (k = 0; k < inner_length; ++k)
    for (j = 0; j < right_columns; ++j) right_matrix[k][j] = (k * 5 + j * 2) % 13 - 6;
  for (i = 0; i < left_rows; ++i)
    for (j = 0; j < right_columns; ++j) {
      product_matrix[i][j] = 0;
      for (k = 0; k < inner_length; ++k) product_matrix[i][j] += left_matrix[i][k] * right_matrix[k][j];
    }
}

/* An array of a kind, whose elements process 0 puts. */
static oc_operand operand_of(int kind, int64_t first, int64_t second, void* values, int64_t* its_shape) {
  oc_operand operand = {kind, 0, OC_FLOAT64, 2, NULL, NULL, NULL};
  its_shape[0] = first;
  its_shape[1] = second;
  operand.shape = its_shape;
  if (kind == OC_OPERAND_MEMORY) {
    operand.memory = values;
  } else if (kind == OC_OPERAND_GLOBAL) {
    EXPECT(oc_ga_create(world, OC_FLOAT64, 2, its_shape, NULL, &operand.array) == OC_OK);
    if (rank == 0) EXPECT(oc_ga_put(operand.array, none, its_shape, values, NULL) == OC_OK);
    EXPECT(oc_ga_sync(operand.array) == OC_OK);
  } else {
    const int64_t chunk[2] = {6, 5};
    oc_dra_options options = {.size = sizeof options, .chunk = chunk};
    EXPECT(oc_dra_create(world, OC_FLOAT64, 2, its_shape, &options, &operand.array) == OC_OK);
    if (rank == 0) EXPECT(oc_dra_put(operand.array, none, its_shape, values, NULL) == OC_OK);
    EXPECT(oc_world_barrier(world) == OC_OK);
  }
  return operand;
}

static void close_operand(const oc_operand* operand) {
  if (operand->kind == OC_OPERAND_GLOBAL) EXPECT(oc_ga_close(operand->array) == OC_OK);
  if (operand->kind == OC_OPERAND_DISK) EXPECT(oc_dra_close(operand->array) == OC_OK);
}

static void get_elements(const oc_operand* operand, void* values, size_t bytes) {
  if (operand->kind == OC_OPERAND_MEMORY)
    memcpy(values, operand->memory, bytes);
  else if (operand->kind == OC_OPERAND_GLOBAL)
    EXPECT(oc_ga_get(operand->array, none, operand->shape, values, NULL) == OC_OK);
  else
    EXPECT(oc_dra_get(operand->array, none, operand->shape, values, NULL) == OC_OK);
  EXPECT(oc_world_barrier(world) == OC_OK);
}

static int is_product(const oc_operand* operand, double factor, double before) {
  double found[left_rows][right_columns];
  int i, j, right = 0;
  get_elements(operand, found, sizeof found);
  for (i = 0; i < left_rows; ++i)
    for (j = 0; j < right_columns; ++j) right += found[i][j] == factor * product_matrix[i][j] + before;
  return right == left_rows * right_columns;
}

static char plan_text[1 << 16];

static void products_of_arrays_anywhere(void) {
  int left_kind, right_kind, out_kind, i, j;
  make_matrices();
  for (left_kind = 0; left_kind < 3; ++left_kind)
    for (right_kind = 0; right_kind < 3; ++right_kind)
      for (out_kind = 0; out_kind < 3; ++out_kind) {
        static double ones[left_rows][right_columns];
        int64_t shapes[3][2], memory_bytes;
        oc_operand operands[2], out;
        const double half = 0.5;
        for (i = 0; i < left_rows; ++i)
          for (j = 0; j < right_columns; ++j) ones[i][j] = 1;
        operands[0] = operand_of(left_kind, left_rows, inner_length, left_matrix, shapes[0]);
        operands[1] = operand_of(right_kind, inner_length, right_columns, right_matrix, shapes[1]);
        out = operand_of(out_kind, left_rows, right_columns, ones, shapes[2]);
        for (memory_bytes = 600; memory_bytes < 100000; memory_bytes *= 10) {
          oc_einsum_options options = {.size = sizeof options, .memory_bytes = memory_bytes};
          oc_einsum_counts counts = {.size = sizeof counts};
          EXPECT(oc_einsum(world, " ik, kj -> ij", 2, operands, &out, &options, &counts) == OC_OK);
          EXPECT(is_product(&out, 1, 0));
          EXPECT(counts.flops == 2.0 * left_rows * inner_length * right_columns);
          EXPECT((counts.disk_written_bytes > 0) == (out_kind == OC_OPERAND_DISK));
          EXPECT(oc_einsum_plan(world, "ik,kj->ij", 2, operands, &out, &options, plan_text, sizeof plan_text,
                                NULL) == OC_OK);
          options.plan = plan_text;
          options.scale = &half;
          options.threads = 2;
          EXPECT(oc_einsum(world, "ik,kj->ij", 2, operands, &out, &options, NULL) == OC_OK);
          EXPECT(is_product(&out, 0.5, 0));
          options.plan = NULL;
          options.accumulate = 1;
          EXPECT(oc_einsum(world, "ik,kj->ij", 2, operands, &out, &options, NULL) == OC_OK);
          EXPECT(is_product(&out, 1, 0));
        }
        close_operand(&operands[0]);
        close_operand(&operands[1]);
        close_operand(&out);
      }
}

/* Values of complex numbers and of single precision; transposed memory, sums, numbers, several operands. */
static void expressions_of_all_kinds(void) {
  int64_t shapes[3][2], turned[2] = {8, 8 * left_rows}, length = inner_length;
  double number = 1, expected = 0, sums[inner_length], transposed[inner_length][left_rows] = {{0}};
  float single[2][3] = {{1, 2, 3}, {4, 5, 6}}, square[2][2];
  double complex_numbers[2][2] = {{1, 2}, {3, -1}}, complex_product[2] = {0, 0};
  oc_operand operands[3], out = {OC_OPERAND_MEMORY, 0, OC_FLOAT64, 0, NULL, NULL, NULL};
  int i, j, k, right = 1;
  operands[0] = operand_of(OC_OPERAND_DISK, left_rows, inner_length, left_matrix, shapes[0]);
  operands[1] = operand_of(OC_OPERAND_GLOBAL, inner_length, right_columns, right_matrix, shapes[1]);
  operands[2] = operand_of(OC_OPERAND_MEMORY, left_rows, right_columns, product_matrix, shapes[2]);
  out.memory = &number;
  EXPECT(oc_einsum(world, "ik,kj,ij", 3, operands, &out, NULL, NULL) == OC_OK);
  for (i = 0; i < left_rows; ++i)
    for (j = 0; j < right_columns; ++j) expected += product_matrix[i][j] * product_matrix[i][j];
  EXPECT(number == expected);
  out.rank = 1;
  out.shape = &length;
  out.memory = sums;
  EXPECT(oc_einsum(world, "ik->k", 1, operands, &out, NULL, NULL) == OC_OK);
  for (k = 0; k < inner_length; ++k) {
    for (expected = 0, i = 0; i < left_rows; ++i) expected += left_matrix[i][k];
    right &= sums[k] == expected;
  }
  EXPECT(right);
  out = operand_of(OC_OPERAND_MEMORY, left_rows, inner_length, transposed, shapes[2]);
  out.stride_bytes = turned;
  EXPECT(oc_einsum(world, "ik->ik", 1, operands, &out, NULL, NULL) == OC_OK);
  for (i = 0; i < left_rows; ++i)
    for (k = 0; k < inner_length; ++k) right &= transposed[k][i] == left_matrix[i][k];
  EXPECT(right);
  close_operand(&operands[0]);
  close_operand(&operands[1]);
  operands[0] = operands[1] = operand_of(OC_OPERAND_MEMORY, 2, 3, single, shapes[0]);
  out = operand_of(OC_OPERAND_MEMORY, 2, 2, square, shapes[1]);
  operands[0].type = operands[1].type = out.type = OC_FLOAT32;
  EXPECT(oc_einsum(world, "ik,jk->ij", 2, operands, &out, NULL, NULL) == OC_OK);
  EXPECT(square[0][0] == 14 && square[0][1] == 32 && square[1][0] == 32 && square[1][1] == 77);
  operands[0] = operand_of(OC_OPERAND_MEMORY, 1, 1, complex_numbers[0], shapes[0]);
  operands[1] = operand_of(OC_OPERAND_MEMORY, 1, 1, complex_numbers[1], shapes[0]);
  operands[0].type = operands[1].type = out.type = OC_COMPLEX128;
  out.rank = 0;
  out.memory = complex_product;
  EXPECT(oc_einsum(world, "ij,ij->", 2, operands, &out, NULL, NULL) == OC_OK);
  EXPECT(complex_product[0] == 5 && complex_product[1] == 5);
}

static void no_elements(void) {
  int64_t shapes[3][2];
  double values[3][2] = {{1, 1}, {1, 1}, {1, 1}};
  oc_operand operands[2], out = operand_of(OC_OPERAND_DISK, 3, 2, values, shapes[2]);
  operands[0] = operand_of(OC_OPERAND_MEMORY, 3, 0, values, shapes[0]);
  operands[1] = operand_of(OC_OPERAND_MEMORY, 0, 2, values, shapes[1]);
  oc_einsum_options options = {.size = sizeof options, .accumulate = 1};
  EXPECT(oc_einsum(world, "ik,kj->ij", 2, operands, &out, &options, NULL) == OC_OK);
  get_elements(&out, values, sizeof values);
  EXPECT(values[0][0] == 1 && values[2][1] == 1);
  EXPECT(oc_einsum(world, "ik,kj->ij", 2, operands, &out, NULL, NULL) == OC_OK);
  get_elements(&out, values, sizeof values);
  EXPECT(values[0][0] == 0 && values[2][1] == 0);
  close_operand(&out);
}

static int says(int found, int code, const char* text) {
  return found == code && strstr(oc_last_error(), text) != NULL;
}

/* The text with one piece replaced; its checksum is right again. */
static const char* changed(const char* from, const char* to) {
  static char result[1 << 16];
  const char* place = strstr(plan_text, from);
  uint64_t value = 0xcbf29ce484222325u;
  char *end, *each;
  if (!place) return from;
  snprintf(result, sizeof result, "%.*s%s%s", (int)(place - plan_text), plan_text, to, place + strlen(from));
  end = strstr(result, "checksum ");
  for (each = result; each < end; ++each) value = (value ^ (unsigned char)*each) * 0x100000001b3u;
  snprintf(end, (size_t)(result + sizeof result - end), "checksum %016llx\n", (unsigned long long)value);
  return result;
}

static void plans_that_do_not_fit(void) {
  static const char* const changes[][3] = {
      {"cuts i 0 ", "cuts i 1 ", "boundaries do not rise from 0 to 23"},
      {"cuts i 0 ", "cuts i 0 0 ", "boundaries do not rise from 0 to 23"},
      {"cuts i", "cuts k", "these are not those of 'i'"},
      {"rows i", "rows k", "the letters are 'k', not 'i'"},
      {"product 0 1", "product 0 0", "an operand was used before"},
      {"product 0 1", "product 0 7", "7 is not -1 to 1"},
      {" result\nway", " disk\nway", "it does not end in the result"},
      {"way result", "way everything", "'everything' is not known"},
      {"way result 1", "way result x", "'x' is no number"},
      {"float64 process shape 23 17", "float64 process shape 23 18",
       "'k' has extent 18, and 17 in operand 1"},
      {"float64 process shape 23 17", "float32 process shape 23 17", "operand 0 of [23, 17] of float32"},
      {"memory 3000", "memory 30", "of memory there are 30"},
      {"panels 0 1\nrows", "panels 0 1 2\nrows", "boundaries do not rise from 0 to 1"},
      {"panels 0 1\nrows", "panels 0 1\ncolumns", "line"},
      {"operand", "0perand", "subscripts of 2 operands, 0 are given"},
  };
  int64_t shapes[3][2];
  double other[left_rows][right_columns];
  char damaged[1 << 16];
  oc_operand operands[2], out;
  oc_einsum_options options = {.size = sizeof options, .memory_bytes = 3000};
  size_t i;
  operands[0] = operand_of(OC_OPERAND_MEMORY, left_rows, inner_length, left_matrix, shapes[0]);
  operands[1] = operand_of(OC_OPERAND_GLOBAL, inner_length, right_columns, right_matrix, shapes[1]);
  out = operand_of(OC_OPERAND_MEMORY, left_rows, right_columns, other, shapes[2]);
  EXPECT(oc_einsum_plan(world, "ik,kj->ij", 2, operands, &out, &options, plan_text, sizeof plan_text, NULL) ==
         OC_OK);
#define RUN(text) (options.plan = (text), oc_einsum(world, "ik,kj->ij", 2, operands, &out, &options, NULL))
  for (i = 0; i < sizeof changes / sizeof changes[0]; ++i) {
    EXPECT(says(RUN(changed(changes[i][0], changes[i][1])), EINVAL, changes[i][2]));
    if (!strstr(oc_last_error(), changes[i][2])) printf("      %s -> %s\n", changes[i][0], changes[i][1]);
  }
  for (i = 0; i < strlen(plan_text); i += 7) {
    memcpy(damaged, plan_text, sizeof damaged);
    damaged[i] ^= 1;
    EXPECT(RUN(damaged) != OC_OK);
    damaged[i] = 0;
    EXPECT(i == 0 ? RUN(damaged) == OC_OK : RUN(damaged) != OC_OK);
  }
  memcpy(damaged, plan_text, sizeof damaged);
  damaged[strlen(damaged) - 60] = '#';
  EXPECT(says(RUN(damaged), EINVAL, "it is damaged: its checksum is"));
  EXPECT(says(RUN("nonsense"), EINVAL, "it begins with 'nonsense'"));
  EXPECT(says(RUN(changed("outcore-plan 1", "outcore-plan 9")), ENOTSUP, "'outcore-plan 9'"));
  EXPECT(says(RUN(changed("processes ", "processes 9")), EINVAL, "the plan is for 9"));
  options.plan = plan_text;
  EXPECT(says(oc_einsum(world, "ik,kj->ji", 2, operands, &out, &options, NULL), EINVAL,
              "the result has shape [19, 23], what is given for it [23, 19]"));
  operands[0].kind = 7;
  EXPECT(says(RUN(NULL), EINVAL, "none of OC_OPERAND_*"));
  operands[0].kind = OC_OPERAND_MEMORY;
  options.memory_bytes = 2000;
  EXPECT(says(RUN(plan_text), ENOMEM, "the plan is for 3000 bytes of memory; here are 2000"));
  options.memory_bytes = 30;
  EXPECT(says(RUN(NULL), ENOMEM, "the smallest panels take"));
  options.memory_bytes = 3000;
  EXPECT(says(oc_einsum(world, "ikk,kj->ij", 2, operands, &out, &options, NULL), EINVAL,
              "operand 0 has 2 axes"));
  EXPECT(says(oc_einsum(world, "ii,kj->ij", 2, operands, &out, &options, NULL), EINVAL, "'i' is twice"));
  EXPECT(says(oc_einsum(world, "ik,kj->iz", 2, operands, &out, &options, NULL), EINVAL, "'z' of the output"));
  EXPECT(says(oc_einsum(world, "ik,kj", 1, operands, &out, &options, NULL), EINVAL,
              "of 2 operands, 1 are given"));
  out.memory = left_matrix;
  EXPECT(says(RUN(NULL), EINVAL, "the result is in operand 0"));
  out.memory = other;
  out.type = OC_INT32;
  EXPECT(says(RUN(NULL), EINVAL, "the result has elements of int32"));
  out.type = OC_FLOAT32;
  EXPECT(says(RUN(NULL), EINVAL, "the result has elements of float32, operand 0 of float64"));
  out.type = OC_FLOAT64;
  options.plan = NULL;
  options.accumulate = rank == size - 1;
  EXPECT(oc_einsum(world, "ik,kj->ij", 2, operands, &out, &options, NULL) == (size > 1 ? EINVAL : OC_OK));
  options.threads = 1000;
  EXPECT(says(RUN(NULL), EINVAL, "1000 threads"));
  close_operand(&operands[1]);
  EXPECT(oc_einsum(world, "ik,kj->ij", 2, operands, &out, NULL, NULL) == EBADF);
#undef RUN
}
