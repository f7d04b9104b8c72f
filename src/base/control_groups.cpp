#include "base/control_groups.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace outcore {
namespace {

using std::filesystem::path;

struct Mount {
  std::string group;  ///< the group of the hierarchy that is visible at `place`
  path place;
  bool version_2 = false;
  std::string options;
};

bool names(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return false;
}

/// The kernel writes blanks and the like as \040.
std::string unescaped(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digits = text.substr(i, 4);
    if (digits.size() == 4 && digits[0] == '\\' &&
        digits.find_first_not_of("01234567", 1) == std::string::npos) {
      result += static_cast<char>(std::stoi(digits.substr(1), nullptr, 8));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// Lines of mountinfo: "36 35 0:32 GROUP PLACE rw,relatime shared:9 - cgroup cgroup rw,memory", see proc(5).
std::vector<Mount> mounts(const path& root) {
  std::vector<Mount> found;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream left(line.substr(0, dash)), right(line.substr(dash + 3));
    std::string skipped, group, place, type, source, options;
    left >> skipped >> skipped >> skipped >> group >> place;
    right >> type >> source >> options;
    if (type == "cgroup" || type == "cgroup2")
      found.push_back({unescaped(group), unescaped(place), type == "cgroup2", options});
  }
  return found;
}

/// The part of a group's name behind the name of the mounted group; empty if the group is not inside it, or
/// is the mounted one.
std::string below(const std::string& group, const std::string& mounted) {
  if (group.find("/..") != std::string::npos) return {};  // outside this name space
  if (mounted == "/") return group == "/" ? "" : group;
  if (group.compare(0, mounted.size(), mounted) != 0) return {};
  const std::string rest = group.substr(mounted.size());
  return rest.empty() || rest[0] == '/' ? rest : std::string{};
}

void add_with_parents(std::vector<ControlGroup>& found, const path& top, std::string rest, int version) {
  for (;; rest.resize(rest.rfind('/'))) {
    path directory = top;
    directory += rest;
    const auto same = [&](const ControlGroup& each) { return each.directory == directory; };
    std::error_code error;
    if (std::filesystem::is_directory(directory, error) && std::none_of(found.begin(), found.end(), same))
      found.push_back({directory, version});
    if (rest.empty()) return;
  }
}

}  // namespace

std::vector<ControlGroup> control_groups(std::string_view controller, const path& root) {
  std::vector<ControlGroup> found;
  const auto mounted = mounts(root);
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:cpuset,memory:/group", version 2 "0::/group"
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool version_2 = controllers.empty();
    if (!version_2 && !names(controllers, controller)) continue;
    for (const Mount& mount : mounted) {
      if (mount.version_2 != version_2 || (!version_2 && !names(mount.options, controller))) continue;
      add_with_parents(found, root / mount.place.relative_path(), below(line.substr(second + 1), mount.group),
                       version_2 ? 2 : 1);
    }
  }
  return found;
}

}  // namespace outcore
