// Second-order pair energies from integrals of one pair of occupied orbitals.
#pragma once

#include <cstddef>

#include "base/sibling.hpp"

namespace outcore::chem {

/// sum_ab v_ab v_ab / d_ab and sum_ab v_ab v_ba / d_ab with d_ab = gap - a[a] - b[b].
struct PairSums {
  double direct, exchange;
};

/// `v`: (ia|jb) as rows a of `stride` doubles, columns b; `gap`: e_i + e_j; `a`, `b`: energies of the `rows`
/// and `columns` virtual orbitals. The exchange sum is left out (0) unless `square`; with `square`, a and b
/// must be the same orbitals.
[[nodiscard]] OUTCORE_SIBLING PairSums pair_sums(const double* v, std::size_t stride, double gap,
                                                 const double* a, std::size_t rows, const double* b,
                                                 std::size_t columns, bool square) noexcept;

}  // namespace outcore::chem
