// What was recorded is replayed, the power fails at every moment, and what may be found then is looked at.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "crash/disk_model.hpp"
#include "file/temporary_directory.hpp"

namespace crash {

/// Empty if what lies in the directory is whole, and one of the states that are allowed; else what is wrong.
using Look = std::function<std::string(const std::string& directory, std::uint64_t allowed)>;

/// In memory, where there are thousands in a second.
inline std::string fast_place() {
  return std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/var/tmp";
}

/// How many images of each scenario: OUTCORE_CRASH_IMAGES for the long form.
inline std::size_t images_wanted(std::size_t usual) {
  const char* wanted = std::getenv("OUTCORE_CRASH_IMAGES");
  return wanted ? std::strtoull(wanted, nullptr, 10) : usual;
}

struct Examination {
  std::size_t images = 0;            ///< all different
  std::vector<std::string> wrong{};  ///< of those images what is wrong, and when the power failed
};

struct Examine {
  std::size_t images = 100;  ///< at most; fewer if there are no others
  std::uint64_t seed = 1;
  int ignored_sync = -1;         ///< as if the one with this place in the log had not been made
  std::size_t first_cut = 1;      ///< the power does not fail before so much of the log has happened
  std::size_t enough_wrong = 3;  ///< no more are looked for
};

inline Examination examine(const Disk& start, const Log& log, const Look& look, const Examine& options) {
  Examination found;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::mt19937_64 random(options.seed);
  constexpr int most_idle_rounds = 20;
  for (int idle = 0; idle < most_idle_rounds; ++idle) {
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

/// Places of the syncs in a log, from `first` on.
inline std::vector<int> syncs_of(const Log& log, std::size_t first = 0) {
  std::vector<int> places;
  for (std::size_t i = first; i < log.size(); ++i)
    if (log[i].kind == Operation::Kind::sync) places.push_back(static_cast<int>(i));
  return places;
}

}  // namespace crash
