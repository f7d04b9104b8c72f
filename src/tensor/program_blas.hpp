// The BLAS of a program in C or Fortran.
#pragma once

#include "base/blas.hpp"

namespace outcore::tensor {

/// That of the program, found by the names of Fortran; functions that it lacks are null. Numbers have 32 or
/// 64 bits.
[[nodiscard]] const Blas& program_blas();

}  // namespace outcore::tensor
