// The inner loops of the integral code, compiled for several instruction sets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/instruction_sets.hpp"

namespace outcore::chem {

/// Columns of a packed slab by width in bytes; see packing.hpp.
struct Widths {
  std::size_t n8, n4, n3, n2, n1;
  [[nodiscard]] std::size_t columns() const { return n8 + n4 + n3 + n2 + n1; }
  [[nodiscard]] std::size_t row_bytes() const { return 8 * n8 + 4 * n4 + 3 * n3 + 2 * n2 + n1; }
};

/// All contributions of one pair of functions (a, b) of shells i and j with the rows of all functions c of k:
///
///   J_ab += v.D_c    K_ac += v.D_b    K_bc += v.D_a        (sums along the row)
///   J_c  += D_ab v   K_a  += D_bc v   K_b  += D_ac v       (rows)
///
/// where v = (ab|c*) and D_x, J_x, K_x are rows over the slab's columns.
struct PairOfFunctions {
  std::size_t length;    // of rows, a multiple of Slab::lane
  const double* values;  // rows v for c = 0, 1, ...
  const double* d_a;
  const double* d_b;
  const double* d_k;  // rows D_c
  double* k_a;
  double* k_b;
  double* j_k;  // rows J_c
  double d_ab;
  const double* d_ac;  // scalars for c = 0, 1, ...
  const double* d_bc;
  double j_ab;  // results
  double* k_ac;
  double* k_bc;
};

struct Kernels {
  void (*largest_of_columns)(const double* row, std::size_t length, double* largest);
  // The integer of a value v is the nearest to v / step - dither. `steps`, `per_step` (1 / step) and `dither`
  // belong to the packed columns; exact columns do not use them.
  void (*pack_row)(const double* row, const std::int32_t* source, const Widths& widths,
                   const double* per_step, const float* dither, std::byte* out);
  void (*unpack_row)(const std::byte* in, const Widths& widths, const double* steps, const float* dither,
                     double* row);
  void (*contract)(PairOfFunctions& pair, int rows);
};

OUTCORE_KERNELS(Kernels, kernels);

}  // namespace outcore::chem
