// Names of placements as Python gives them.
#pragma once

#include <cerrno>
#include <string>

#include "outcore/error.hpp"
#include "outcore/placement.hpp"

namespace outcore::python {

[[nodiscard]] inline Placement parse_placement(const std::string& name) {
  if (name == "auto") return Placement::automatic;
  if (name == "shared") return Placement::shared;
  if (name == "local") return Placement::local;
  throw Error(EINVAL, {.attempted = "placement '" + name + "'", .detail = "it is auto, shared or local"});
}

[[nodiscard]] inline const char* placement_name(Placement placement) noexcept {
  return placement == Placement::automatic ? "auto" : placement == Placement::shared ? "shared" : "local";
}

}  // namespace outcore::python
