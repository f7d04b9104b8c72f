// The classic names of disk resident arrays, for C and Fortran.

#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "compat/dra.hpp"
#include "compat/global_arrays.hpp"
#include "outcore/compat/dra.h"

namespace outcore::compat {
namespace {

/// Converts a list of C, whose axes have reverse order and whose indices count from 0. Returns none for NULL
/// or an invalid number of axes; the call is then refused.
template <class Number>
Axes turned(const Number* list, int axes, int first = 0) {
  Axes result{};
  if (!list || axes > max_axes) return result;
  for (int k = 0; k < axes; ++k) result[static_cast<std::size_t>(k)] = list[axes - 1 - k] + first;
  return result;
}

Axes axes_of(const Integer* list, Integer axes) {
  Axes result{};
  if (list) std::copy_n(list, std::clamp<Integer>(axes, 0, max_axes), result.begin());
  return result;
}

int axes_of_array(int d_a) {
  DiskArrayFacts facts;
  return dra_facts(d_a, &facts) ? 0 : facts.axes;
}

/// The disk space of the files in a directory.
std::int64_t bytes_in(const std::string& directory) {
  std::int64_t bytes = 0;
  std::error_code failure;
  for (const auto& each : std::filesystem::directory_iterator(directory, failure)) {
    struct stat found{};
    if (stat(each.path().c_str(), &found) == 0) bytes += 512 * static_cast<std::int64_t>(found.st_blocks);
  }
  return bytes;
}

template <class Start>
Integer started(Integer* place, Start start) {
  int number = DRA_REQ_INVALID;
  const int code = start(&number);
  *place = number;
  return code;
}

/// A LOGICAL by value: programs with 4-byte INTEGER may leave anything in the other 4 bytes.
bool is_true(long logical) {
  return static_cast<Integer>(logical) != 0;
}

int section(bool writes, bool transposes, int g_a, const int* glo, const int* ghi, int d_a,
            const dra_size_t* dlo, const dra_size_t* dhi, int* request) {
  const int axes = axes_of_array(d_a);  // a global array of another number is refused
  const Patch from{turned(glo, axes, 1), turned(ghi, axes, 1)},
      to{turned(dlo, axes, 1), turned(dhi, axes, 1)};
  return dra_move(writes, transposes, g_a, &from, d_a, &to, request);
}

Integer section(bool writes, const Integer* transp, const Integer* g_a, const Integer* glo,
                const Integer* ghi, const Integer* d_a, const Integer* dlo, const Integer* dhi,
                Integer* request) {
  const int axes = axes_of_array(static_cast<int>(*d_a));
  const Patch from{axes_of(glo, axes), axes_of(ghi, axes)}, to{axes_of(dlo, axes), axes_of(dhi, axes)};
  return started(request, [&](int* number) {
    return dra_move(writes, *transp != 0, static_cast<int>(*g_a), &from, static_cast<int>(*d_a), &to, number);
  });
}

/// A section of two axes, whose bounds are separate arguments.
Integer section_2(bool writes, const Integer* transp, const Integer* g_a, const Patch& from,
                  const Integer* d_a, const Patch& to, Integer* request) {
  return started(request, [&](int* number) {
    return dra_move(writes, *transp != 0, static_cast<int>(*g_a), &from, static_cast<int>(*d_a), &to, number);
  });
}

}  // namespace
}  // namespace outcore::compat

using namespace outcore::compat;

OUTCORE_CLASSIC int DRA_Init(int /*max_arrays*/, double /*max_array_size*/, double /*total_disk_space*/,
                             double /*max_memory*/) {
  return guarded([&] { return dra_start(); });
}
OUTCORE_CLASSIC int DRA_Terminate() {
  return guarded([&] { return dra_stop(); });
}

OUTCORE_CLASSIC int NDRA_Create(int type, int ndim, dra_size_t dims[], char* name, char* filename, int mode,
                                dra_size_t reqdims[], int* d_a) {
  return guarded([&] {
    return dra_make({type, ndim, turned(dims, ndim), text_of(name), text_of(filename)}, mode,
                    turned(reqdims, ndim), d_a);
  });
}

/// Numbers of files and of processes that do I/O have no meaning here.
OUTCORE_CLASSIC int NDRA_Create_config(int type, int ndim, dra_size_t dims[], char* name, char* filename,
                                       int mode, dra_size_t reqdims[], int /*numfiles*/, int /*ioprocs*/,
                                       int* d_a) {
  return NDRA_Create(type, ndim, dims, name, filename, mode, reqdims, d_a);
}

OUTCORE_CLASSIC int DRA_Open(char* filename, int mode, int* d_a) {
  return guarded([&] { return dra_open(text_of(filename), mode, d_a); });
}
OUTCORE_CLASSIC int DRA_Close(int d_a) {
  return guarded([&] { return dra_end(d_a, false); });
}
OUTCORE_CLASSIC int DRA_Delete(int d_a) {
  return guarded([&] { return dra_end(d_a, true); });
}

OUTCORE_CLASSIC int NDRA_Inquire(int d_a, int* type, int* ndim, dra_size_t dims[], char* name,
                                 char* filename) {
  return guarded([&]() -> int {
    DiskArrayFacts facts;
    if (const int code = dra_facts(d_a, &facts)) return code;
    *type = facts.type;
    *ndim = facts.axes;
    for (int k = 0; k < facts.axes; ++k) dims[k] = facts.shape[static_cast<std::size_t>(facts.axes - 1 - k)];
    hand_out_c(facts.name, name, 72);
    hand_out_c(facts.filename, filename, 248);
    return OC_OK;
  });
}

OUTCORE_CLASSIC int NDRA_Write(int g_a, int d_a, int* request) {
  return guarded([&] { return dra_move(true, false, g_a, nullptr, d_a, nullptr, request); });
}
OUTCORE_CLASSIC int NDRA_Read(int g_a, int d_a, int* request) {
  return guarded([&] { return dra_move(false, false, g_a, nullptr, d_a, nullptr, request); });
}
OUTCORE_CLASSIC int NDRA_Write_section(long transp, int g_a, int glo[], int ghi[], int d_a, dra_size_t dlo[],
                                       dra_size_t dhi[], int* request) {
  return guarded([&] { return section(true, is_true(transp), g_a, glo, ghi, d_a, dlo, dhi, request); });
}
OUTCORE_CLASSIC int NDRA_Read_section(long transp, int g_a, int glo[], int ghi[], int d_a, dra_size_t dlo[],
                                      dra_size_t dhi[], int* request) {
  return guarded([&] { return section(false, is_true(transp), g_a, glo, ghi, d_a, dlo, dhi, request); });
}

OUTCORE_CLASSIC int DRA_Wait(int request) {
  return guarded([&] { return dra_wait_for(request); });
}
OUTCORE_CLASSIC int DRA_Probe(int request, int* compl_status) {
  return guarded([&] {
    bool done = false;
    const int code = dra_look(request, &done);
    *compl_status = !done;
    return code;
  });
}

OUTCORE_CLASSIC void DRA_Set_debug(long flag) {
  print_errors(is_true(flag));
}
OUTCORE_CLASSIC void DRA_Set_default_config(int /*numfiles*/, int /*numioprocs*/) {}

/// Does nothing: transfers proceed without it.
OUTCORE_CLASSIC void DRA_Flick() {
  sched_yield();
}

/// Process 0 prints; it may be the only one that calls.
OUTCORE_CLASSIC void DRA_Print_internals(int d_a) {
  guarded([&] {
    DiskArrayFacts facts;
    std::int64_t chunk[OC_MAX_RANK] = {};
    if (dra_facts(d_a, &facts) || oc_dra_inquire(d_a, nullptr, nullptr, nullptr, chunk) ||
        (pnga_nodeid && pnga_nodeid() != 0))
      return OC_OK;
    std::printf("Disk array %d: \"%s\" in %s, type %d\n", d_a, facts.name.c_str(), facts.filename.c_str(),
                facts.type);
    std::printf("  dimensions:");
    for (int k = 0; k < facts.axes; ++k)
      std::printf(" %lld", static_cast<long long>(facts.shape[static_cast<std::size_t>(k)]));
    std::printf("\n  chunk:");
    for (int k = 0; k < facts.axes; ++k)
      std::printf(" %lld", static_cast<long long>(chunk[facts.axes - 1 - k]));
    std::printf("\n  bytes on disk: %lld\n", static_cast<long long>(bytes_in(facts.filename)));
    std::fflush(stdout);
    return OC_OK;
  });
}

/// Whether the program uses the Fortran interface; the original asks this of itself.
OUTCORE_CLASSIC int DRA_uses_fapi() {
  return 0;
}

// ---- Fortran ----

OUTCORE_CLASSIC Integer dra_init_(const Integer*, const double*, const double*, const double*) {
  return guarded([&] { return dra_start(); });
}
OUTCORE_CLASSIC Integer dra_terminate_() {
  return guarded([&] { return dra_stop(); });
}

OUTCORE_CLASSIC Integer ndra_create_(const Integer* type, const Integer* ndim, const Integer* dims,
                                     const char* name, const char* filename, const Integer* mode,
                                     const Integer* reqdims, Integer* d_a, std::size_t name_length,
                                     std::size_t filename_length) {
  return guarded([&]() -> Integer {
    return started(d_a, [&](int* number) {
      return dra_make({static_cast<int>(*type), static_cast<int>(*ndim), axes_of(dims, *ndim),
                       text_of(name, name_length), text_of(filename, filename_length)},
                      static_cast<int>(*mode), axes_of(reqdims, *ndim), number);
    });
  });
}

OUTCORE_CLASSIC Integer ndra_create_config_(const Integer* type, const Integer* ndim, const Integer* dims,
                                            const char* name, const char* filename, const Integer* mode,
                                            const Integer* reqdims, const Integer* /*numfiles*/,
                                            const Integer* /*ioprocs*/, Integer* d_a, std::size_t name_length,
                                            std::size_t filename_length) {
  return ndra_create_(type, ndim, dims, name, filename, mode, reqdims, d_a, name_length, filename_length);
}

OUTCORE_CLASSIC Integer dra_create_(const Integer* type, const Integer* dim1, const Integer* dim2,
                                    const char* name, const char* filename, const Integer* mode,
                                    const Integer* reqdim1, const Integer* reqdim2, Integer* d_a,
                                    std::size_t name_length, std::size_t filename_length) {
  const Integer axes = 2, dims[] = {*dim1, *dim2}, typical[] = {*reqdim1, *reqdim2};
  return ndra_create_(type, &axes, dims, name, filename, mode, typical, d_a, name_length, filename_length);
}

OUTCORE_CLASSIC Integer dra_open_(const char* filename, const Integer* mode, Integer* d_a,
                                  std::size_t length) {
  return guarded([&]() -> Integer {
    return started(d_a, [&](int* number) {
      return dra_open(text_of(filename, length), static_cast<int>(*mode), number);
    });
  });
}
OUTCORE_CLASSIC Integer dra_close_(const Integer* d_a) {
  return guarded([&] { return dra_end(static_cast<int>(*d_a), false); });
}
OUTCORE_CLASSIC Integer dra_delete_(const Integer* d_a) {
  return guarded([&] { return dra_end(static_cast<int>(*d_a), true); });
}

OUTCORE_CLASSIC Integer ndra_inquire_(const Integer* d_a, Integer* type, Integer* ndim, Integer* dims,
                                      char* name, char* filename, std::size_t name_length,
                                      std::size_t filename_length) {
  return guarded([&]() -> Integer {
    DiskArrayFacts facts;
    if (const int code = dra_facts(static_cast<int>(*d_a), &facts)) return code;
    *type = fortran_type(facts.type);
    *ndim = facts.axes;
    std::copy_n(facts.shape.begin(), facts.axes, dims);
    hand_out(facts.name, name, name_length);
    hand_out(facts.filename, filename, filename_length);
    return OC_OK;
  });
}

OUTCORE_CLASSIC Integer dra_inquire_(const Integer* d_a, Integer* type, Integer* dim1, Integer* dim2,
                                     char* name, char* filename, std::size_t name_length,
                                     std::size_t filename_length) {
  return guarded([&]() -> Integer {
    Integer axes = 0, dims[max_axes] = {1, 1};
    const Integer code = ndra_inquire_(d_a, type, &axes, dims, name, filename, name_length, filename_length);
    if (code == OC_OK && axes > 2)
      return failed(EINVAL, "DRA: dra_inquire of an array with more than two axes");
    if (code != OC_OK) return code;
    *dim1 = dims[0];
    *dim2 = axes == 2 ? dims[1] : 1;
    return OC_OK;
  });
}

OUTCORE_CLASSIC Integer ndra_write_(const Integer* g_a, const Integer* d_a, Integer* request) {
  return started(request, [&](int* number) {
    return NDRA_Write(static_cast<int>(*g_a), static_cast<int>(*d_a), number);
  });
}
OUTCORE_CLASSIC Integer ndra_read_(const Integer* g_a, const Integer* d_a, Integer* request) {
  return started(request, [&](int* number) {
    return NDRA_Read(static_cast<int>(*g_a), static_cast<int>(*d_a), number);
  });
}
OUTCORE_CLASSIC Integer dra_write_(const Integer* g_a, const Integer* d_a, Integer* request) {
  return ndra_write_(g_a, d_a, request);
}
OUTCORE_CLASSIC Integer dra_read_(const Integer* g_a, const Integer* d_a, Integer* request) {
  return ndra_read_(g_a, d_a, request);
}

OUTCORE_CLASSIC Integer ndra_write_section_(const Integer* transp, const Integer* g_a, const Integer* glo,
                                            const Integer* ghi, const Integer* d_a, const Integer* dlo,
                                            const Integer* dhi, Integer* request) {
  return guarded([&] { return section(true, transp, g_a, glo, ghi, d_a, dlo, dhi, request); });
}
OUTCORE_CLASSIC Integer ndra_read_section_(const Integer* transp, const Integer* g_a, const Integer* glo,
                                           const Integer* ghi, const Integer* d_a, const Integer* dlo,
                                           const Integer* dhi, Integer* request) {
  return guarded([&] { return section(false, transp, g_a, glo, ghi, d_a, dlo, dhi, request); });
}
OUTCORE_CLASSIC Integer dra_write_section_(const Integer* transp, const Integer* g_a, const Integer* gilo,
                                           const Integer* gihi, const Integer* gjlo, const Integer* gjhi,
                                           const Integer* d_a, const Integer* dilo, const Integer* dihi,
                                           const Integer* djlo, const Integer* djhi, Integer* request) {
  return guarded([&]() -> Integer {
    return section_2(true, transp, g_a, {{*gilo, *gjlo}, {*gihi, *gjhi}}, d_a,
                     {{*dilo, *djlo}, {*dihi, *djhi}}, request);
  });
}
OUTCORE_CLASSIC Integer dra_read_section_(const Integer* transp, const Integer* g_a, const Integer* gilo,
                                          const Integer* gihi, const Integer* gjlo, const Integer* gjhi,
                                          const Integer* d_a, const Integer* dilo, const Integer* dihi,
                                          const Integer* djlo, const Integer* djhi, Integer* request) {
  return guarded([&]() -> Integer {
    return section_2(false, transp, g_a, {{*gilo, *gjlo}, {*gihi, *gjhi}}, d_a,
                     {{*dilo, *djlo}, {*dihi, *djhi}}, request);
  });
}

OUTCORE_CLASSIC Integer dra_wait_(const Integer* request) {
  return guarded([&] { return dra_wait_for(static_cast<int>(*request)); });
}
OUTCORE_CLASSIC Integer dra_probe_(const Integer* request, Integer* status) {
  int pending = 0;
  const int code = DRA_Probe(static_cast<int>(*request), &pending);
  *status = pending;
  return code;
}
OUTCORE_CLASSIC void dra_flick_() {
  DRA_Flick();
}
/// A function, because dra.fh declares it as one.
OUTCORE_CLASSIC Integer dra_set_debug_(const Integer* flag) {
  DRA_Set_debug(*flag);
  return OC_OK;
}
OUTCORE_CLASSIC void dra_set_mode_(const Integer* /*mode*/) {}
OUTCORE_CLASSIC void dra_set_default_config_(const Integer* /*numfiles*/, const Integer* /*numioprocs*/) {}
OUTCORE_CLASSIC void dra_print_internals_(const Integer* d_a) {
  DRA_Print_internals(static_cast<int>(*d_a));
}
