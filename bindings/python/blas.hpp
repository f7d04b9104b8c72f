// The BLAS of SciPy, by addresses of its functions.
#pragma once

#include "base/blas.hpp"

namespace outcore::python {

/// Throws Error(ENOTSUP) for one whose sizes are of another type. Holds the GIL.
[[nodiscard]] const Blas& scipy_blas();

}  // namespace outcore::python
