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

/// The groups of this process that a controller ("memory", "cpu") may limit, innermost first and with all
/// groups around them that can be seen from here: of version 2 and of version 1, wherever they are mounted,
/// whichever controllers a hierarchy of version 1 has besides. `root` stands before all paths: "/", but for
/// tests.
[[nodiscard]] OUTCORE_SIBLING std::vector<ControlGroup> control_groups(
    std::string_view controller, const std::filesystem::path& root = "/");

}  // namespace outcore
