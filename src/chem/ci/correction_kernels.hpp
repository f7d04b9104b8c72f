// The inner loops of correction.hpp, compiled for several instruction sets.
#pragma once

#include <cstddef>

#include "base/instruction_sets.hpp"

namespace outcore::chem::ci {

struct CorrectionKernels {
  // out += factor * in
  void (*add_double)(double* out, const double* in, double factor, std::size_t length);
  void (*add_float)(double* out, const float* in, double factor, std::size_t length);
  // out = in, rounded; in becomes the stored value
  void (*store_float)(float* out, double* in, std::size_t length);
  double (*dot)(const double* a, const double* b, std::size_t length);
  // t = r / (energy - d) with r = s - energy * x; adds |r|^2 and sum (d - energy) x^2 to sums
  void (*correct)(double* t, const double* x, const double* s, const double* d, double energy,
                  double smallest, std::size_t length, double* sums);
  // see round_to in correction.hpp
  double (*round_to)(double* values, double* added, double step, std::size_t length);
};

OUTCORE_KERNELS(CorrectionKernels, correction_kernels);

}  // namespace outcore::chem::ci
