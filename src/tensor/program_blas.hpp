// The BLAS of a program in C or Fortran.
#pragma once

#include "base/blas.hpp"

namespace outcore::tensor {

/// The BLAS of the program, found by its Fortran names; functions that it lacks are null. Its INTEGER has 32
/// or 64 bits.
[[nodiscard]] const Blas& program_blas();

}  // namespace outcore::tensor
