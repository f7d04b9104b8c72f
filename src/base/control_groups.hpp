// The control groups of Linux around this process.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/sibling.hpp"

namespace outcore {

struct ControlGroup {
  std::filesystem::path directory;
  int version = 2;  ///< of the interface: the names of the files in it
};

/// The groups by which a controller ("memory", "cpu") may limit this process, innermost first, with all
/// visible groups around them. Finds version 2 and version 1, wherever they are mounted, also if a hierarchy
/// of version 1 has further controllers. `root` is put before all paths: "/", except in tests.
[[nodiscard]] OUTCORE_SIBLING std::vector<ControlGroup> control_groups(
    std::string_view controller, const std::filesystem::path& root = "/");

}  // namespace outcore
