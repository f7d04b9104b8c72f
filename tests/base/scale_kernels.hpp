// A table of kernels, declared as methods do it.
#pragma once

#include <cstddef>

#include "base/instruction_sets.hpp"

namespace scale {

struct Kernels {
  int lane;
  void (*scale)(double* x, std::size_t length, double factor);
};

OUTCORE_KERNELS(Kernels, kernels);

}  // namespace scale
