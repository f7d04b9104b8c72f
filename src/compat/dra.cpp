#include "compat/dra.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "compat/global_arrays.hpp"
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
constexpr int c_integer = sizeof(Integer) == 8 ? c_long : c_int;

/// Sections up to this size are read by each process for itself. A collective transfer takes several meetings
/// of all processes, which costs more than the reading of a thin slice.
constexpr std::int64_t small_bytes = std::int64_t{1} << 20;

constexpr const char* mark = "pario ";  // begins the metadata of an array made here: type, then name

/// 0 if there is none.
int element_type(int ma) {
  for (const TypeOf& each : types)
    if (each.ma == c_type(ma)) return each.oc;
  return 0;
}

int ma_type(int oc) {
  for (const TypeOf& each : types)
    if (each.oc == oc) return each.ma;
  return 0;
}

struct Array {
  DiskArrayFacts facts;
  int mode = DRA_RW, element = 0, world = 0;
};

struct Pending {
  int d_a = 0, g_a = 0;
  std::int64_t request = 0;
  bool reads = false, direct = false, any = false;
  bool alone = false;  ///< each process reads for itself; then an error is of this process
  Patch patch;         ///< of the global array
  std::shared_ptr<std::vector<std::byte>> buffer;
  int code = OC_OK;  ///< of a read that could not begin
  std::string text, filename;
};

bool started = false;
auto& arrays = *new Numbered<Array>;
auto& requests = *new Numbered<Pending>;

/// The processes that make and open arrays now: those of the default group of Global Arrays.
int world_of_default_group(int* world) {
  const int group = pnga_pgroup_get_default ? static_cast<int>(pnga_pgroup_get_default()) : -1;
  if (group <= 0 || !GA_MPI_Comm_pgroup_default) return world_of_job("", world);
  void* const communicator = GA_MPI_Comm_pgroup_default();
  // Open MPI has a function for it; in MPICH the handle is the same.
  const auto number_of = reinterpret_cast<int (*)(void*)>(dlsym(RTLD_DEFAULT, "MPI_Comm_c2f"));
  const auto same = static_cast<int>(reinterpret_cast<std::intptr_t>(communicator));
  return world_of_group(group, number_of ? number_of(communicator) : same, world);
}

/// The text of process 0, as in the original: programs may give another one at each process.
std::string of_first(const std::string& text) {
  if (!pnga_brdcst) return text;
  constexpr Integer message = 30000;  // a number of DRA
  auto bytes = static_cast<Integer>(text.size());
  pnga_brdcst(message, &bytes, sizeof bytes, 0);
  std::string first = text;
  first.resize(static_cast<std::size_t>(bytes));
  pnga_brdcst(message, first.data(), bytes, 0);
  return first;
}

/// A file in the place of a new array goes, as that of an old array does in the original; programs make one
/// to see whether they may. Anything else is refused by who makes the array.
void remove_file(const std::string& filename) {
  struct stat found{};
  if (lstat(filename.c_str(), &found) == 0 && S_ISREG(found.st_mode)) unlink(filename.c_str());
}

/// What may be wrong beside what the system says.
std::string hint(const std::string& filename) {
  if (access((filename + ".info").c_str(), F_OK) != 0) return "";
  return "; an array of the original is imported by outcore import-dra";
}

/// A list for C: axes turned round.
void turn(const Axes& from, int axes, std::int64_t* to) {
  for (int k = 0; k < axes; ++k) to[k] = from[static_cast<std::size_t>(axes - 1 - k)];
}

int closed(int d_a) {
  return failed(EBADF, "DRA: there is no disk array " + std::to_string(d_a));
}

std::string text_of(const Patch& patch, int axes) {
  std::string text = "[";
  for (int k = 0; k < axes; ++k)
    text += (k ? "," : "") + std::to_string(patch.lo[static_cast<std::size_t>(k)]) + ":" +
            std::to_string(patch.hi[static_cast<std::size_t>(k)]);
  return text + "]";
}

bool inside(const Patch& patch, const Axes& shape, int axes) {
  for (std::size_t k = 0; k < static_cast<std::size_t>(axes); ++k)
    if (patch.lo[k] < 1 || patch.hi[k] > shape[k] || patch.lo[k] > patch.hi[k]) return false;
  return true;
}

Patch whole(const Axes& shape, int axes) {
  Patch patch;
  for (std::size_t k = 0; k < static_cast<std::size_t>(axes); ++k) patch.lo[k] = 1, patch.hi[k] = shape[k];
  return patch;
}

/// What is asked for, checked: the same at all processes, since all give the same.
struct Transfer {
  Array array;
  Patch section, box;
  int axes = 0;
  bool transposes = false;

  [[nodiscard]] std::size_t array_axis(std::size_t k) const {
    return transposes ? static_cast<std::size_t>(axes) - 1 - k : k;
  }
};

int check(bool writes, bool transposes, int g_a, const Patch* section, int d_a, const Patch* box,
          Transfer* transfer) {
  if (!started) return failed(EINVAL, "DRA: dra_init was not called");
  if (!pnga_sync || !pnga_access_ptr)
    return failed(ENOTSUP, "DRA: the program has no Global Arrays, or hides them");
  const auto array = arrays.get(d_a);
  if (!array) return closed(d_a);
  const std::string attempted =
      std::string("DRA: ") + (writes ? "write to " : "read from ") + array->facts.filename;
  if (array->mode == (writes ? DRA_R : DRA_W))
    return failed(EACCES, attempted + ": it was opened to " + (writes ? "read" : "write") + " only");
  if (!pnga_valid_handle(g_a))
    return failed(EBADF, attempted + ": there is no global array " + std::to_string(g_a));
  Integer type = 0, axes = 0, dims[max_axes] = {};
  pnga_inquire(g_a, &type, &axes, dims);
  if (element_type(static_cast<int>(type)) != array->element)
    return failed(EINVAL, attempted + ": it is of type " + std::to_string(array->facts.type) +
                              ", the global array of type " + std::to_string(type));
  if (axes != array->facts.axes)
    return failed(EINVAL, attempted + ": it has " + std::to_string(array->facts.axes) +
                              " axes, the global array " + std::to_string(axes));
  Axes shape{};
  std::copy_n(dims, axes, shape.begin());
  *transfer = {*array, section ? *section : whole(shape, static_cast<int>(axes)),
               box ? *box : whole(array->facts.shape, static_cast<int>(axes)), static_cast<int>(axes),
               transposes};
  if (!inside(transfer->section, shape, transfer->axes))
    return failed(EINVAL, attempted + ": section " + text_of(transfer->section, transfer->axes) +
                              " is not inside the global array " +
                              text_of(whole(shape, transfer->axes), transfer->axes));
  if (!inside(transfer->box, array->facts.shape, transfer->axes))
    return failed(EINVAL, attempted + ": section " + text_of(transfer->box, transfer->axes) +
                              " is not inside " +
                              text_of(whole(array->facts.shape, transfer->axes), transfer->axes));
  for (std::size_t k = 0; k < static_cast<std::size_t>(transfer->axes); ++k) {
    const std::size_t a = transfer->array_axis(k);
    if (transfer->section.hi[k] - transfer->section.lo[k] != transfer->box.hi[a] - transfer->box.lo[a])
      return failed(EINVAL, attempted + ": section " + text_of(transfer->box, transfer->axes) +
                                " has another shape than " + text_of(transfer->section, transfer->axes) +
                                " of the global array" + (transposes ? ", transposed" : ""));
  }
  return OC_OK;
}

/// The part of a section that this process moves: what it holds of it, in place; of arrays of which it has no
/// single patch in place an even share of the last axis, through a buffer.
struct Part {
  Patch patch;
  bool any = false, direct = true;
};

Part own_part(int g_a, const Transfer& transfer) {
  Part part;
  const auto axes = static_cast<std::size_t>(transfer.axes);
  auto me = pnga_nodeid();
  const auto processes = pnga_nnodes();
  part.direct =
      !(pnga_total_blocks && pnga_total_blocks(g_a) >= 0) && !(pnga_is_mirrored && pnga_is_mirrored(g_a));
  part.patch = transfer.section;
  part.any = true;
  if (part.direct) {
    Integer lo[max_axes] = {}, hi[max_axes] = {};
    if (pnga_get_pgroup && pnga_pgroup_nodeid) me = pnga_pgroup_nodeid(pnga_get_pgroup(g_a));
    pnga_distribution(g_a, me, lo, hi);
    for (std::size_t k = 0; k < axes; ++k) {
      part.patch.lo[k] = std::max<std::int64_t>(part.patch.lo[k], lo[k]);
      part.patch.hi[k] = std::min<std::int64_t>(part.patch.hi[k], hi[k]);
      part.any = part.any && lo[k] > 0 && part.patch.lo[k] <= part.patch.hi[k];
    }
  } else {
    const std::int64_t first = part.patch.lo[axes - 1], count = part.patch.hi[axes - 1] - first + 1;
    part.patch.lo[axes - 1] = first + count * me / processes;
    part.patch.hi[axes - 1] = first + count * (me + 1) / processes - 1;
    part.any = part.patch.lo[axes - 1] <= part.patch.hi[axes - 1];
  }
  return part;
}

void copy(const Patch& patch, Integer* lo, Integer* hi) {
  std::copy(patch.lo.begin(), patch.lo.end(), lo);
  std::copy(patch.hi.begin(), patch.hi.end(), hi);
}

/// Leading dimensions of contiguous memory of a patch.
void leading(const Patch& patch, int axes, Integer* ld) {
  for (int k = 0; k + 1 < axes; ++k)
    ld[k] = static_cast<Integer>(patch.hi[static_cast<std::size_t>(k)] -
                                 patch.lo[static_cast<std::size_t>(k)] + 1);
}

/// What the elements of a section take, of all processes.
std::int64_t size_bytes(const Transfer& transfer) {
  auto bytes = static_cast<std::int64_t>(oc_element_bytes(transfer.array.element));
  for (std::size_t k = 0; k < static_cast<std::size_t>(transfer.axes); ++k)
    bytes *= transfer.section.hi[k] - transfer.section.lo[k] + 1;
  return bytes;
}

/// Whether a write of this array is under way: all processes have the same, since they begin and end them
/// together.
bool is_written(int d_a) {
  bool writes = false;
  requests.for_each(
      [&](int, Pending& pending) { writes = writes || (pending.d_a == d_a && !pending.reads); });
  return writes;
}

/// A write comes after the reads that were begun before it.
void complete_reads_of(int d_a) {
  requests.for_each([&](int, Pending& pending) {
    int which = 0;
    if (pending.d_a == d_a && pending.alone && pending.request > 0) oc_wait_any(1, &pending.request, &which);
  });
}

/// The same code at all processes; `otherwise` is the text where only others have failed.
int agreed(int code, const std::string& otherwise) {
  if (!pnga_gop) return code;
  Integer all = code;
  char most[] = "max";
  pnga_gop(c_integer, &all, 1, most);
  return code == OC_OK && all != OC_OK ? failed(static_cast<int>(all), otherwise) : code;
}

/// Ends what a transfer has of a global array. Returns a code.
int finish(Pending& pending) {
  int code = pending.code;
  if (code) {
    failed(code, pending.text);
  } else if (pending.request > 0) {
    code = oc_wait(pending.request, nullptr);
    if (code) failed(code);
  }
  if (pending.alone)
    code = agreed(code, "DRA: another process could not read its part of " + pending.filename);
  if (!pending.any) return code;
  Integer lo[max_axes], hi[max_axes], ld[max_axes] = {};
  copy(pending.patch, lo, hi);
  if (!pnga_valid_handle(pending.g_a)) return code;  // it was destroyed: MPI_Win_free waited for this
  if (pending.direct) {
    (pending.reads ? pnga_release_update : pnga_release)(pending.g_a, lo, hi);
  } else if (pending.reads && code == OC_OK) {
    leading(pending.patch, static_cast<int>(pnga_ndim(pending.g_a)), ld);
    pnga_put(pending.g_a, lo, hi, pending.buffer->data(), ld);
  }
  return code;
}

}  // namespace

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

void finish_transfers() noexcept {
  requests.for_each([](int, Pending& pending) {
    int which = 0;
    if (pending.direct && pending.request > 0)
      oc_wait_any(1, &pending.request, &which);  // its error is for dra_wait
  });
}

int dra_start() {
  int world = 0;
  if (const int code = world_of_job("", &world)) return code;
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
    if (const int code = dra_end(d_a, false); code && !first) first = code, text = error_text(code);
  started = false;
  int code = close_worlds_of_groups();
  const int last = close_world_of_job("");
  code = code ? code : last;
  return first ? failed(first, text) : code;
}

int dra_make(const DiskArrayFacts& given, int mode, const Axes& typical, int* d_a) {
  int world = 0;
  if (!started) return failed(EINVAL, "DRA: dra_init was not called");
  DiskArrayFacts facts = given;
  facts.filename = of_first(given.filename);
  facts.name = of_first(given.name);
  if (facts.axes < 1 || facts.axes > max_axes)
    return failed(EINVAL, "DRA: create " + facts.filename + ": an array has 1 to 7 axes, not " +
                              std::to_string(facts.axes));
  if (mode != DRA_RW && mode != DRA_W && mode != DRA_R)
    return failed(EINVAL, "DRA: create " + facts.filename + ": the mode is none of DRA_RW, DRA_W, DRA_R");
  if (const int code = world_of_default_group(&world)) return code;
  Array array{facts, mode, element_type(facts.type), world};
  array.facts.type = c_type(facts.type);
  if (array.element == 0)
    return failed(EINVAL, "DRA: create " + facts.filename + ": type " + std::to_string(facts.type) +
                              " is none that is known");
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
  if (facts.filename.empty()) return failed(EINVAL, "DRA: create: the name of the file is empty");
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
  const std::string filename = of_first(given);
  if (mode != DRA_RW && mode != DRA_W && mode != DRA_R)
    return failed(EINVAL, "DRA: open " + filename + ": the mode is none of DRA_RW, DRA_W, DRA_R");
  if (const int code = world_of_default_group(&world)) return code;
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
    return failed(
        EINVAL, "DRA: open " + filename + ": it has more than 7 axes, or a type that Global Arrays has not");
  }
  if (metadata.starts_with(mark)) {  // else another program made it
    const int type = std::atoi(metadata.c_str() + std::strlen(mark));
    if (element_type(type) == array.element) array.facts.type = type;
    array.facts.name = metadata.substr(std::min(metadata.find('\n'), metadata.size() - 1) + 1);
  }
  for (int k = 0; k < array.facts.axes; ++k)
    array.facts.shape[static_cast<std::size_t>(k)] = shape[array.facts.axes - 1 - k];
  array.facts.filename = filename;
  array.mode = mode;
  array.world = world;
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
  const auto array = arrays.take(d_a);
  if (!array) return closed(d_a);
  int code = OC_OK;
  if (deletes && array->mode == DRA_R) {  // may be deleted, as the original allows
    code = oc_dra_close(d_a);
    if (code == OC_OK) code = oc_dra_open(array->world, array->facts.filename.c_str(), 1, &d_a);
    if (code != OC_OK) return failed(code);
  }
  code = deletes ? oc_dra_delete(d_a) : oc_dra_close(d_a);  // after its transfers
  return code ? failed(code) : OC_OK;
}

int dra_move(bool writes, bool transposes, int g_a, const Patch* section, int d_a, const Patch* box,
             int* request) {
  Transfer transfer;
  *request = DRA_REQ_INVALID;
  const int own = check(writes, transposes, g_a, section, d_a, box, &transfer);
  if (const int code = agreed(own, "DRA: another process has refused the transfer")) return code;
  if (writes) complete_reads_of(d_a);
  pnga_sync();  // what others have put is there, or is not needed any more
  const Part part = own_part(g_a, transfer);
  const int axes = transfer.axes;
  Pending pending;
  pending.d_a = d_a;
  pending.g_a = g_a;
  pending.reads = !writes;
  pending.direct = part.direct;
  pending.any = part.any;
  pending.alone = !writes && size_bytes(transfer) <= small_bytes && !is_written(d_a);
  pending.patch = part.patch;
  pending.filename = transfer.array.facts.filename;
  std::int64_t begin[max_axes] = {}, end[max_axes] = {}, strides[max_axes] = {};
  std::byte* memory = nullptr;
  if (part.any) {
    const auto element_bytes = static_cast<std::int64_t>(oc_element_bytes(transfer.array.element));
    Integer lo[max_axes], hi[max_axes], ld[max_axes] = {};
    copy(part.patch, lo, hi);
    if (part.direct) {
      pnga_access_ptr(g_a, lo, hi, static_cast<void*>(&memory), ld);
    } else {
      std::int64_t bytes = element_bytes;
      for (std::size_t k = 0; k < static_cast<std::size_t>(axes); ++k)
        bytes *= part.patch.hi[k] - part.patch.lo[k] + 1;
      pending.buffer = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(bytes));
      memory = pending.buffer->data();
      leading(part.patch, axes, ld);
      if (writes) pnga_get(g_a, lo, hi, memory, ld);
    }
    std::int64_t stride = element_bytes;
    for (std::size_t k = 0; k < static_cast<std::size_t>(axes); ++k) {
      const std::size_t a = transfer.array_axis(k), c = static_cast<std::size_t>(axes) - 1 - a;
      begin[c] = transfer.box.lo[a] - 1 + part.patch.lo[k] - transfer.section.lo[k];
      end[c] = begin[c] + part.patch.hi[k] - part.patch.lo[k] + 1;
      strides[c] = stride;
      if (k + 1 < static_cast<std::size_t>(axes)) stride *= ld[k];
    }
  }
  if (pending.alone) {
    if (part.any) pending.code = oc_dra_get_async(d_a, begin, end, memory, strides, &pending.request);
    if (pending.code) pending.text = oc_last_error();  // for dra_wait, where the others learn of it
    *request = requests.add(std::move(pending));
    return OC_OK;
  }
  const int code = writes ? oc_dra_write_blocks_all_async(d_a, begin, end, memory, strides, &pending.request)
                          : oc_dra_read_blocks_all_async(d_a, begin, end, memory, strides, &pending.request);
  if (code) return failed(code);
  *request = requests.add(std::move(pending));
  return OC_OK;
}

int dra_wait_for(int request) {
  if (request == DRA_REQ_INVALID) return OC_OK;
  auto pending = requests.take(request);
  if (!pending) return failed(EINVAL, "DRA: there is no request " + std::to_string(request));
  const int code = finish(*pending);
  pnga_sync();
  return code;
}

int dra_look(int request, bool* done) {
  *done = true;
  if (request == DRA_REQ_INVALID) return OC_OK;
  const auto pending = requests.get(request);
  if (!pending) return failed(EINVAL, "DRA: there is no request " + std::to_string(request));
  int its_done = 1;
  if (pending->request == 0) return OC_OK;  // nothing of it is here
  if (const int code = oc_test(pending->request, &its_done)) return failed(code);
  *done = its_done != 0;
  return OC_OK;
}

}  // namespace outcore::compat
