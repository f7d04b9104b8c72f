// Finds the MPI library that the program has loaded, and the part of Outcore that was built for it. The core
// itself uses no symbol of MPI, so one build works with any MPI, and without.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <cerrno>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "transport/death_watch.hpp"

namespace outcore::transport {
namespace {

constexpr const char* attempted = "use MPI";

[[noreturn]] void refuse(std::string detail) {
  throw Error(ENOTSUP, {.attempted = attempted, .detail = std::move(detail)});
}

/// libmpi.so.12, libmpich.so.12, libmpi.so.40, libmpi_abi.so.0; not libmpifort.so, libmpicxx.so and the like.
bool is_mpi(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  for (const char* stem :
       {"libmpi.so", "libmpich.so", "libmpi_abi.so", "libmpi_cray.so", "libmpi_gnu.so", "libmpi_mt.so"})
    if (name == stem || name.starts_with(std::string(stem) + ".")) return true;
  return false;
}

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* list) {
        if (info->dlpi_name && is_mpi(info->dlpi_name))
          static_cast<std::vector<std::string>*>(list)->emplace_back(info->dlpi_name);
        return 0;
      },
      &found);
  return found;
}

/// In a forked child: its parent had loaded an MPI library, which the child must not use.
bool parent_had_mpi = false;
const int fork_is_seen = pthread_atfork([] { parent_had_mpi = !loaded_libraries().empty(); },
                                        [] { parent_had_mpi = false; }, nullptr);

std::string listed(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) text += (text.empty() ? "" : " and ") + path;
  return text;
}

std::string version_of(void* library) {
  const auto ask = reinterpret_cast<int (*)(char*, int*)>(dlsym(library, "MPI_Get_library_version"));
  if (!ask) return "an MPI before version 3";
  char text[8192] = {};
  int length = 0;
  ask(text, &length);
  return std::string(text).substr(0, std::string(text).find_first_of("\n,"));
}

/// The binary interface of a library; empty: an unknown one.
std::string family_of(void* library, const std::string& path) {
  if (dlsym(library, "ompi_mpi_comm_world"))
    return path.find(".so.40") != std::string::npos || path.ends_with(".so") ? "openmpi" : "";
  if (path.find("libmpi_abi") != std::string::npos) return "";
  return dlsym(library, "MPI_Get_library_version") && dlsym(library, "MPI_Comm_idup") ? "mpich" : "";
}

std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&outcore::transport::self), &info) == 0 || !info.dli_fname)
    return ".";
  return std::filesystem::path(info.dli_fname).parent_path();
}

/// The MPI library of this process, and its binary interface.
struct Library {
  void* handle;
  std::string path, family;
};

Library find_library() {
  const auto paths = loaded_libraries();
  if (paths.empty())
    refuse(
        "no MPI library is loaded in this process: a C++ program links to one, in Python import mpi4py.MPI "
        "first; "
        "one process alone needs none");
  if (paths.size() > 1)
    refuse("two MPI libraries are loaded in this process, " + listed(paths) +
           ": make sure that mpi4py and all else use the same one");
  const std::string& path = paths.front();
  // mpi4py hides the symbols of its MPI; make them visible to the library that is loaded next.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  if (!library) refuse("the MPI library " + path + " is loaded but cannot be opened: " + dlerror());
  const std::string family = family_of(library, path);
  if (family.empty())
    refuse(
        path + " (" + version_of(library) +
        ") speaks neither the binary interface of MPICH (libmpi.so.12) nor that of Open MPI (libmpi.so.40)");
  return {library, path, family};
}

/// The directory of our libraries that call MPI.
void* load_shim(const Library& library) {
  const std::string shim = own_folder() + "/outcore_mpi_" + library.family + ".so";
  if (!std::filesystem::exists(shim))
    refuse("this build of Outcore has no support for " + version_of(library.handle) + " (" + library.path +
           "): " + shim + " is missing; build it again where mpi.h of that MPI is installed");
  void* handle = dlopen(shim.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) refuse(shim + ", for the MPI library " + library.path + ", cannot be loaded: " + dlerror());
  return handle;
}

template <class Function>
Function* function_of_shim(const Library& library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(load_shim(library), name));
}

template <class Function>
Function* function_of(const Library& library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library.handle, name));
}

bool flag_of(const Library& library, const char* name) {
  int flag = 0;
  function_of<int(int*)>(library, name)(&flag);
  return flag != 0;
}

/// The least of the numbers of all processes of a communicator, by handles of a binary interface. For an
/// invalid communicator, or one that connects two groups, the number of this process: attaching to it fails
/// at all processes.
template <class Handle>
int least(const Library& library, Handle communicator, Handle none, Handle integers, Handle min, int mine) {
  int between_groups = 1, found = mine;
  if (communicator == none) return mine;
  function_of<int(Handle, int*)>(library, "MPI_Comm_test_inter")(communicator, &between_groups);
  if (between_groups) return mine;
  const auto reduce =
      function_of<int(const void*, void*, int, Handle, Handle, Handle)>(library, "MPI_Allreduce");
  return reduce(&mine, &found, 1, integers, min, communicator) == 0 ? found : 0;
}

/// Whether all processes of a communicator have loaded our library that calls MPI. The others would wait for
/// ever for a process that has not (because it can open no more files, say); that process can tell them only
/// by functions of its MPI.
bool all_have_loaded(const Library& library, int fortran_communicator, bool mine) {
  if (!flag_of(library, "MPI_Initialized") || flag_of(library, "MPI_Finalized")) return mine;
  if (library.family == "mpich")
    return least<int>(library, fortran_communicator, 0x04000000, 0x4c000405, 0x58000002, mine) != 0;
  // A program may contain the library's predefined handles (copy relocations); the library's own copies are
  // then never set. The library uses the ones that the linker finds first.
  const auto symbol = [&](const char* name) { return dlsym(RTLD_DEFAULT, name); };
  void* communicator = function_of<void*(int)>(library, "MPI_Comm_f2c")(fortran_communicator);
  return least<void*>(library, communicator, symbol("ompi_mpi_comm_null"), symbol("ompi_mpi_int"),
                      symbol("ompi_mpi_op_min"), mine) != 0;
}

}  // namespace

std::unique_ptr<Transport> mpi(int fortran_communicator) {
  if (parent_had_mpi) refuse("this process was forked from one with MPI; start workers by 'spawn'");
  const Library library = find_library();
  Transport* (*attach)(int) = nullptr;
  std::exception_ptr failure;
  try {
    attach = function_of_shim<Transport*(int)>(library, "outcore_mpi_attach");
  } catch (const Error&) {
    failure = std::current_exception();
  }
  const bool all = all_have_loaded(library, fortran_communicator, !failure);
  if (failure) std::rethrow_exception(failure);
  if (!all) refuse("another process could not load the part of this library that calls MPI, and says why");
  return std::unique_ptr<Transport>(attach(fortran_communicator));
}

void watch_in_finalize() {
  if (!parent_had_mpi) function_of_shim<void()>(find_library(), "outcore_mpi_watch_in_finalize")();
}

}  // namespace outcore::transport
