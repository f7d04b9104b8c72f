#include "compat/shared.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>

namespace outcore::compat {
namespace {

thread_local int last_code = 0;
thread_local std::string last_text;
std::atomic<bool> prints{false};

std::mutex worlds_mutex;
// Leaked: at exit nothing collective happens any more.
auto& worlds = *new std::map<std::string, int>;
auto& worlds_of_groups = *new std::map<std::vector<int>, int>;  // by their processes

}  // namespace

std::string text_of(const char* characters, std::size_t length) {
  std::string text(characters, length);
  const auto end = text.find('\0');
  if (end != std::string::npos) text.resize(end);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

void hand_out(const std::string& text, char* place, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) place[i] = i < text.size() ? text[i] : ' ';
}

void hand_out_c(const std::string& text, char* place, std::size_t size) {
  std::snprintf(place, size, "%s", text.c_str());
}

int failed(int code, const std::string& text) {
  last_code = code;
  last_text = text;
  if (prints) std::fprintf(stderr, "outcore: %s\n", text.c_str());
  return code;
}

int failed(int code) {
  return failed(code, oc_last_error());
}

std::string error_text(int code) {
  if (code == 0) return "OK";
  if (code == last_code) return last_text;
  return code > 0 && code < 200 ? std::strerror(code) : "";
}

void print_errors(bool on) {
  prints = on;
}

SplitPath split_path(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

int world_of_job(const std::string& scratch, int* world) {
  const std::lock_guard guard(worlds_mutex);
  const auto found = worlds.find(scratch);
  if (found != worlds.end()) {
    *world = found->second;
    return OC_OK;
  }
  oc_world_options options{};
  options.size = sizeof options;
  options.scratch = scratch.c_str();
  if (const int code = oc_world_job(&options, world)) return failed(code);
  worlds.emplace(scratch, *world);
  return OC_OK;
}

int world_of_group(std::vector<int> members, int communicator, int* world) {
  const std::lock_guard guard(worlds_mutex);
  const auto found = worlds_of_groups.find(members);
  if (found != worlds_of_groups.end()) {
    *world = found->second;
    return OC_OK;
  }
  if (const int code = oc_world_mpi(communicator, nullptr, world)) return failed(code);
  worlds_of_groups.emplace(std::move(members), *world);
  return OC_OK;
}

int close_worlds_of_groups() {
  const std::lock_guard guard(worlds_mutex);
  int first = OC_OK;
  for (const auto& [members, world] : worlds_of_groups)
    if (const int code = oc_world_close(world); code && !first) first = failed(code);
  worlds_of_groups.clear();
  return first;
}

int close_world_of_job(const std::string& scratch) {
  const std::lock_guard guard(worlds_mutex);
  const auto found = worlds.find(scratch);
  if (found == worlds.end()) return OC_OK;
  const int world = found->second;
  worlds.erase(found);
  const int code = oc_world_close(world);
  return code ? failed(code) : OC_OK;
}

}  // namespace outcore::compat

/// The text of the last failure in this thread of what has a classic name.
OUTCORE_CLASSIC const char* oc_pario_last_error() {
  return outcore::compat::last_text.c_str();
}
