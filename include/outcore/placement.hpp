// Placement: where the files lie that processes have in common.
#pragma once

#include <cstdint>

namespace outcore {

/// Where the files of an array, or of a shared file, lie.
enum class Placement : std::uint8_t {
  automatic,  ///< shared if every process sees the directory of the first, else local
  shared,     ///< one directory that all processes see
  local       ///< a directory on each node, each with its part
};

}  // namespace outcore
