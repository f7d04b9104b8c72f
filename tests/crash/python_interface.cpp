// Functions for a Python program, which calls them by ctypes and was started with the recorder preloaded.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "crash/images.hpp"
#include "crash/recorder.hpp"

namespace {

crash::Disk start;
crash::Log recorded;
std::vector<crash::Sync> syncs;

}  // namespace

extern "C" {

/// Begins to record an empty directory.
void outcore_crash_begin(const char* directory) {
  start = crash::Disk();
  crash::begin_recording(directory, start);
}

/// Cuts off the recorded operations at `cut`, and writes their result to the empty `directory`, where another
/// program goes on.
void outcore_crash_go_on(std::uint64_t cut, const char* directory) {
  for (std::size_t i = 0; i < std::min<std::size_t>(cut, recorded.size()); ++i) start.apply(recorded[i]);
  start.live().write(directory);
  crash::begin_recording(directory, start);
  crash::allow(start.allowed());
}

void outcore_crash_allow(std::uint64_t states) {
  crash::allow(states);
}

std::uint64_t outcore_crash_end() {
  recorded = crash::end_recording();
  syncs = crash::syncs_of(recorded);
  return recorded.size();
}

std::uint64_t outcore_crash_syncs() {
  return syncs.size();
}

const char* outcore_crash_sync_name(std::uint64_t sync) {
  return syncs[sync].name.c_str();
}

/// Returns the number of images; `look` says whether one is right. Leaves out the sync `without`, if that is
/// not -1, and then stops at the first wrong image.
std::uint64_t outcore_crash_examine(std::uint64_t images, std::uint64_t seed, std::int64_t without,
                                    int (*look)(const char* directory, std::uint64_t allowed),
                                    std::uint64_t* wrong) {
  crash::Examine options{.images = images, .seed = seed};
  if (without >= 0) {
    options.ignored_sync = syncs[static_cast<std::size_t>(without)].place;
    options.first_cut = static_cast<std::size_t>(options.ignored_sync) + 1;
    options.enough_wrong = 1;
  }
  const crash::Examination found = crash::examine(
      start, recorded,
      [look](const std::string& directory, std::uint64_t allowed) {
        return std::string(look(directory.c_str(), allowed) ? "" : "wrong");
      },
      options);
  *wrong = found.wrong.size();
  return found.images;
}
}
