// Placement: where the files lie that processes share.
#pragma once

#include <cstdint>

namespace outcore {

/// Where the files of an array, or of a shared file, lie.
enum class Placement : std::uint8_t {
  automatic,  ///< shared if every process sees the directory of the first, else local
  shared,     ///< one directory that all processes see
  local       ///< one directory on each node, with the part of that node
};

}  // namespace outcore
