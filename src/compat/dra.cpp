// Disk arrays by their classic names: made, opened, closed.

#include "compat/dra.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "compat/dra_arrays.hpp"
#include "compat/global_arrays.hpp"
#include "compat/processes.hpp"
#include "outcore/compat/dra.h"

namespace outcore::compat {
namespace {

// Numbers of types in MA, which are those of GA.
enum MaType {
  c_char = 1000,
  c_int = 1001,
  c_long = 1002,
  c_float = 1003,
  c_double = 1004,
  c_single_complex = 1006,
  c_double_complex = 1007,
  f_byte = 1009,
  f_int = 1010,
  f_logical = 1011,
  f_real = 1012,
  f_double = 1013,
  f_single_complex = 1014,
  f_double_complex = 1015,
  c_long_long = 1016
};

struct TypeOf {
  int ma, oc;
};
constexpr TypeOf types[] = {{c_char, OC_INT8},
                            {c_int, OC_INT32},
                            {c_long, OC_INT64},
                            {c_float, OC_FLOAT32},
                            {c_double, OC_FLOAT64},
                            {c_single_complex, OC_COMPLEX64},
                            {c_double_complex, OC_COMPLEX128},
                            {c_long_long, OC_INT64}};
static_assert(c_integer == (sizeof(Integer) == 8 ? c_long : c_int));

constexpr const char* mark = "pario ";  // begins the metadata of an array made here: type, then name

int ma_type(int oc) {
  for (const TypeOf& each : types)
    if (each.oc == oc) return each.ma;
  return 0;
}

bool started = false;
auto& arrays = *new Numbered<Array>;

/// Removes a file at the path of a new array, as the original removes that of an old array; programs make
/// such a file to test whether they may write there. Anything else at the path is refused when the array is
/// made. The first process removes the file, once no problem with the array is known.
void remove_file(const std::string& filename) {
  struct stat found{};
  if (pnga_nodeid && pnga_initialized && pnga_initialized() && pnga_nodeid() != 0) return;
  if (lstat(filename.c_str(), &found) == 0 && S_ISREG(found.st_mode)) unlink(filename.c_str());
}

/// Possible causes of a failure, beside the text of the system.
std::string hint(const std::string& filename) {
  if (access((filename + ".info").c_str(), F_OK) != 0) return "";
  return "; an array of the original is imported by outcore import-dra";
}

int check(int mode, const std::string& attempted) {
  if (mode == DRA_RW || mode == DRA_W || mode == DRA_R) return OC_OK;
  return failed(EINVAL, attempted + ": the mode is none of DRA_RW, DRA_W, DRA_R");
}

int check(const DiskArrayFacts& facts, int mode, const std::string& attempted) {
  if (facts.filename.empty()) return failed(EINVAL, attempted + ": the name of the file is empty");
  if (facts.axes < 1 || facts.axes > max_axes)
    return failed(EINVAL, attempted + ": an array has 1 to 7 axes, not " + std::to_string(facts.axes));
  if (element_type(facts.type) == 0)
    return failed(EINVAL, attempted + ": type " + std::to_string(facts.type) + " is none that is known");
  auto bytes = static_cast<std::int64_t>(oc_element_bytes(element_type(facts.type)));
  for (int k = 0; k < facts.axes; ++k) {
    const std::int64_t extent = facts.shape[static_cast<std::size_t>(k)];
    if (extent < 1)
      return failed(EINVAL, attempted + ": dimension " + std::to_string(extent) + " is less than 1");
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      return failed(EFBIG, attempted + ": more than 2^63 bytes");
  }
  return check(mode, attempted);
}

/// Closes or deletes an array that is open. Collective.
int end_array(int d_a, bool deletes) {
  const auto array = arrays.take(d_a);
  int code = OC_OK;
  if (deletes && array->mode == DRA_R) {  // may be deleted, as the original allows
    code = oc_dra_close(d_a);
    if (code == OC_OK) code = oc_dra_open(array->world, array->facts.filename.c_str(), 1, &d_a);
    if (code != OC_OK) return failed(code);
  }
  code = deletes ? oc_dra_delete(d_a) : oc_dra_close(d_a);  // after its transfers
  return code ? failed(code) : OC_OK;
}

}  // namespace

Numbered<Array>& open_arrays() {
  return arrays;
}

bool dra_started() noexcept {
  return started;
}

int element_type(int ma) {
  for (const TypeOf& each : types)
    if (each.ma == c_type(ma)) return each.oc;
  return 0;
}

void turn(const Axes& from, int axes, std::int64_t* to) {
  for (int k = 0; k < axes; ++k) to[k] = from[static_cast<std::size_t>(axes - 1 - k)];
}

int closed(int d_a) {
  return failed(EBADF, "DRA: there is no disk array " + std::to_string(d_a));
}

int fortran_type(int type) {
  switch (type) {
    case c_char:
      return f_byte;
    case c_float:
      return f_real;
    case c_double:
      return f_double;
    case c_single_complex:
      return f_single_complex;
    case c_double_complex:
      return f_double_complex;
    default:
      return type == c_integer ? static_cast<int>(f_int) : type;
  }
}

int c_type(int type) {
  switch (type) {
    case f_byte:
      return c_char;
    case f_int:
    case f_logical:
      return c_integer;
    case f_real:
      return c_float;
    case f_double:
      return c_double;
    case f_single_complex:
      return c_single_complex;
    case f_double_complex:
      return c_double_complex;
    default:
      return type;
  }
}

int dra_start() {
  int world = 0;
  if (pnga_initialized && !pnga_initialized())
    return failed(EINVAL, "DRA: dra_init: ga_initialize was not called");
  if (const int code = world_of_processes("", &world)) return code;
  started = true;
  return OC_OK;
}

int dra_stop() {
  std::vector<int> open;
  arrays.for_each([&](int d_a, Array&) { open.push_back(d_a); });
  std::ranges::sort(open);  // all processes in the same order
  int first = OC_OK;
  std::string text;
  for (const int d_a : open)
    if (const int code = end_array(d_a, false); code && !first) first = code, text = error_text(code);
  started = false;
  const int code = close_worlds("");
  return first ? failed(first, text) : code;
}

int dra_make(const DiskArrayFacts& given, int mode, const Axes& typical, int* d_a) {
  int world = 0;
  if (!started) return failed(EINVAL, "DRA: dra_init was not called");
  DiskArrayFacts facts = given;
  facts.filename = of_first(given.filename);
  facts.name = of_first(given.name);
  const std::string attempted = "DRA: create " + facts.filename;
  if (const int code = agreed(check(facts, mode, attempted), attempted + ": another process has refused it"))
    return code;
  if (const int code = world_of_processes("", &world)) return code;
  Array array{facts, mode, element_type(facts.type), world, calling_processes()};
  array.facts.type = c_type(facts.type);
  std::int64_t shape[max_axes], its_typical[max_axes];
  Axes filled = facts.shape;
  bool any = false;
  for (std::size_t k = 0; k < static_cast<std::size_t>(facts.axes); ++k)
    if (typical[k] > 0) filled[k] = std::min(typical[k], facts.shape[k]), any = true;
  turn(facts.shape, facts.axes, shape);
  turn(filled, facts.axes, its_typical);
  const std::string metadata = mark + std::to_string(array.facts.type) + "\n" + facts.name;
  oc_dra_options options{};
  options.size = sizeof options;
  options.path = facts.filename.c_str();
  options.overwrite = 1;
  options.typical = any ? its_typical : nullptr;
  options.metadata = metadata.c_str();
  int made = 0;
  remove_file(facts.filename);
  if (const int code = oc_dra_create(world, array.element, facts.axes, shape, &options, &made))
    return failed(code);
  arrays.put(made, std::move(array));
  *d_a = made;
  return OC_OK;
}

int dra_open(const std::string& given, int mode, int* d_a) {
  int world = 0, opened = 0;
  if (!started) return failed(EINVAL, "DRA: dra_init was not called");
  const std::string filename = of_first(given), attempted = "DRA: open " + filename;
  if (const int code = agreed(check(mode, attempted), attempted + ": another process has refused it"))
    return code;
  if (const int code = world_of_processes("", &world)) return code;
  if (const int code = oc_dra_open(world, filename.c_str(), mode != DRA_R, &opened))
    return failed(code, oc_last_error() + hint(filename));
  Array array;
  std::int64_t shape[OC_MAX_RANK], bytes = 0;
  oc_dra_inquire(opened, &array.element, &array.facts.axes, shape, nullptr);
  oc_dra_metadata(opened, nullptr, 0, &bytes);
  std::string metadata(static_cast<std::size_t>(bytes) + 1, '\0');
  oc_dra_metadata(opened, metadata.data(), metadata.size(), nullptr);
  metadata.resize(static_cast<std::size_t>(bytes));
  array.facts.type = ma_type(array.element);
  if (array.facts.axes > max_axes || array.facts.type == 0) {
    oc_dra_close(opened);
    return failed(EINVAL, attempted + ": it has more than 7 axes, or a type that Global Arrays has not");
  }
  if (metadata.starts_with(mark)) {  // else another program has made it
    const int type = std::atoi(metadata.c_str() + std::strlen(mark));
    if (element_type(type) == array.element) array.facts.type = type;
    array.facts.name = metadata.substr(std::min(metadata.find('\n'), metadata.size() - 1) + 1);
  }
  for (int k = 0; k < array.facts.axes; ++k)
    array.facts.shape[static_cast<std::size_t>(k)] = shape[array.facts.axes - 1 - k];
  array.facts.filename = filename;
  array.mode = mode;
  array.world = world;
  array.members = calling_processes();
  arrays.put(opened, std::move(array));
  *d_a = opened;
  return OC_OK;
}

int dra_facts(int d_a, DiskArrayFacts* facts) {
  const auto array = arrays.get(d_a);
  if (!array) return closed(d_a);
  *facts = array->facts;
  return OC_OK;
}

int dra_end(int d_a, bool deletes) {
  const auto array = arrays.get(d_a);
  const std::string attempted = deletes ? "DRA: delete " : "DRA: close ";
  const int own = array
                      ? check_callers(calling_processes(), array->members, attempted + array->facts.filename)
                      : closed(d_a);
  if (const int code = agreed(own, attempted + std::to_string(d_a) + ": another process has no such array"))
    return code;
  return end_array(d_a, deletes);
}

}  // namespace outcore::compat
