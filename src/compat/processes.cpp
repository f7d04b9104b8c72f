#include "compat/processes.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "compat/global_arrays.hpp"

namespace outcore::compat {
namespace {

std::mutex mutex;
// Leaked: at exit no collective calls are possible any more. The key: the processes in the order of their
// group (empty: all of the job), and the scratch directory.
auto& worlds = *new std::map<std::pair<std::vector<int>, std::string>, int>;

bool has_global_arrays() {
  return pnga_initialized && pnga_initialized();
}

/// The processes of a group, in its order; empty for the job.
std::vector<int> in_order(Integer group) {
  std::vector<int> members;
  if (!has_global_arrays() || group < 0 || !pnga_pgroup_nnodes || !pnga_pgroup_absolute_id) return members;
  const Integer count = pnga_pgroup_nnodes(group);
  for (Integer each = 0; each < count; ++each)
    members.push_back(static_cast<int>(pnga_pgroup_absolute_id(group, each)));
  return members;
}

Integer default_group() {
  return has_global_arrays() && pnga_pgroup_get_default ? pnga_pgroup_get_default() : -1;
}

/// The Fortran handle of the communicator of the default group.
int communicator_of_default_group() {
  void* const communicator = GA_MPI_Comm_pgroup_default();
  // Open MPI has a function for it; in MPICH the handle is the same.
  const auto number_of = reinterpret_cast<int (*)(void*)>(dlsym(RTLD_DEFAULT, "MPI_Comm_c2f"));
  const auto same = static_cast<int>(reinterpret_cast<std::intptr_t>(communicator));
  return number_of ? number_of(communicator) : same;
}

}  // namespace

Members members_of(Integer group) {
  Members members = in_order(group);
  if (members.empty() && has_global_arrays() && pnga_pgroup_nnodes) {
    members.resize(static_cast<std::size_t>(pnga_pgroup_nnodes(-1)));
    std::iota(members.begin(), members.end(), 0);
  }
  std::ranges::sort(members);
  return members;
}

Members calling_processes() {
  return members_of(default_group());
}

std::string text_of(const Members& members) {
  constexpr std::size_t named = 8;
  std::string text = "the processes ";
  for (std::size_t i = 0; i < std::min(members.size(), named); ++i)
    text += (i ? ", " : "") + std::to_string(members[i]);
  return text + (members.size() > named ? " ... (" + std::to_string(members.size()) + ")" : "");
}

int check_callers(const Members& callers, const Members& makers, const std::string& attempted) {
  if (callers == makers) return OC_OK;
  return failed(EINVAL, attempted + ": it belongs to " + text_of(makers) + ", and is used by " +
                            text_of(callers) + " of the default group");
}

int world_of_processes(const std::string& scratch, int* world) {
  const std::lock_guard guard(mutex);
  // Group 0 is that of mirrored arrays, whose transfers take the job.
  const Integer group = GA_MPI_Comm_pgroup_default ? default_group() : -1;
  std::pair key{group > 0 ? in_order(group) : std::vector<int>(), scratch};
  const auto found = worlds.find(key);
  if (found != worlds.end()) {
    *world = found->second;
    return OC_OK;
  }
  oc_world_options options{};
  options.size = sizeof options;
  options.scratch = scratch.c_str();
  const int code = key.first.empty() ? oc_world_job(&options, world)
                                     : oc_world_mpi(communicator_of_default_group(), &options, world);
  if (code) return failed(code);
  worlds.emplace(std::move(key), *world);
  return OC_OK;
}

int close_worlds(const std::string& scratch) {
  const std::lock_guard guard(mutex);
  int first = OC_OK;
  // Groups are closed in the order of their members, the same at all processes; the job comes last.
  for (auto each = worlds.rbegin(); each != worlds.rend(); ++each) {
    if (each->first.second != scratch) continue;
    if (const int code = oc_world_close(each->second); code && !first) first = failed(code);
  }
  std::erase_if(worlds, [&](const auto& each) { return each.first.second == scratch; });
  return first;
}

int agreed(int code, const std::string& otherwise, Vote* vote) {
  if (!pnga_gop || !has_global_arrays()) return code;
  Integer most[] = {code, vote && vote->any, vote && !vote->all};
  char operation[] = "max";
  pnga_gop(c_integer, most, 3, operation);
  if (vote) *vote = {most[1] != 0, most[2] == 0};
  return code == OC_OK && most[0] != OC_OK ? failed(static_cast<int>(most[0]), otherwise) : code;
}

std::string of_first(const std::string& text) {
  if (!pnga_brdcst || !has_global_arrays()) return text;
  constexpr Integer message = 30000;  // a number of DRA
  auto bytes = static_cast<Integer>(text.size());
  pnga_brdcst(message, &bytes, sizeof bytes, 0);
  std::string first = text;
  first.resize(static_cast<std::size_t>(bytes));
  pnga_brdcst(message, first.data(), bytes, 0);
  return first;
}

}  // namespace outcore::compat
