// Replays what was recorded, lets the power fail at every moment, and examines what may be found then.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "crash/disk_model.hpp"
#include "support/temporary_directory.hpp"

namespace crash {

/// Empty if the directory holds a whole array in one of the allowed states; otherwise what is wrong.
using Look = std::function<std::string(const std::string& directory, std::uint64_t allowed)>;

/// A directory in memory, where thousands of images can be examined in a second.
inline std::string fast_place() {
  return std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/var/tmp";
}

/// The number of images of each scenario; OUTCORE_CRASH_IMAGES sets it for the long form.
inline std::size_t images_wanted(std::size_t usual) {
  const char* wanted = std::getenv("OUTCORE_CRASH_IMAGES");
  return wanted ? std::strtoull(wanted, nullptr, 10) : usual;
}

struct Examination {
  std::size_t images = 0;            ///< all different
  std::vector<std::string> wrong{};  ///< for images that are wrong: the fault, and when the power failed
};

struct Examine {
  std::size_t images = 100;  ///< at most; fewer if there are no more
  std::uint64_t seed = 1;
  int ignored_sync = -1;         ///< the sync at this place in the log counts as not made
  std::size_t first_cut = 1;     ///< the power does not fail before so much of the log has happened
  std::size_t enough_wrong = 3;  ///< stop after so many
};

inline Examination examine(const Disk& start, const Log& log, const Look& look, const Examine& options) {
  Examination found;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::mt19937_64 random(options.seed);
  constexpr int max_idle_rounds = 20;
  for (int idle = 0; idle < max_idle_rounds; ++idle) {
    Disk disk = start;
    for (std::size_t cut = 1; cut <= log.size(); ++cut) {
      if (static_cast<int>(cut) - 1 != options.ignored_sync) disk.apply(log[cut - 1]);
      if (cut < options.first_cut) continue;
      const Tree image = disk.image(random);
      if (!seen.insert({image.hash(), disk.allowed()}).second) continue;
      idle = 0;
      ++found.images;
      const TemporaryDirectory directory(fast_place());
      image.write(directory);
      if (const std::string problem = look(directory, disk.allowed()); !problem.empty())
        found.wrong.push_back(problem + " (power lost after step " + std::to_string(cut) + " of " +
                              std::to_string(log.size()) + ")");
      if (found.wrong.size() >= options.enough_wrong || found.images >= options.images) return found;
    }
  }
  return found;
}

/// A sync in a log, and its purpose in the program: a sync that every commit makes has the same name in each.
struct Sync {
  int place = 0;  ///< in the log
  std::string name{};
};

inline std::vector<Sync> syncs_of(const Log& log) {
  using Kind = Operation::Kind;
  std::vector<Sync> syncs;
  std::map<int, std::string> last;  // for each directory: what was done in it last
  for (std::size_t i = 0; i < log.size(); ++i) {
    const Operation& each = log[i];
    if (each.kind == Kind::enter) last[each.at] = " with what was made";
    if (each.kind == Kind::rename) last[each.at] = " after " + each.name + " was renamed";
    if (each.kind == Kind::leave && each.name == "manifest") last[each.at] = " after it was removed";
    if (each.kind != Kind::sync) continue;
    const bool numbered = each.name.find("/table.") != std::string::npos;  // by generations
    const auto directory = last.find(each.node);
    syncs.push_back({static_cast<int>(i), (numbered ? each.name.substr(0, each.name.rfind('.')) : each.name) +
                                              (directory == last.end() ? "" : directory->second)});
  }
  return syncs;
}

/// Removes from `names` the syncs before `end` without which something goes wrong.
inline void find_needed(const Disk& start, const Log& log, const Look& look, std::size_t images,
                        std::set<std::string>& names, std::size_t end = static_cast<std::size_t>(-1)) {
  for (const Sync& sync : syncs_of(log)) {
    if (!names.contains(sync.name) || static_cast<std::size_t>(sync.place) >= end) continue;
    const Examination found = examine(start, log, look,
                                      {.images = images,
                                       .ignored_sync = sync.place,
                                       .first_cut = static_cast<std::size_t>(sync.place) + 1,
                                       .enough_wrong = 1});
    if (found.wrong.empty()) continue;
    std::printf("      without the sync of %s: %s\n", sync.name.c_str(), found.wrong.front().c_str());
    names.erase(sync.name);
  }
}

}  // namespace crash
