// Two-electron integrals as matrices over pairs of orbitals, one for each symmetry of the pair.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "chem/ci/integrals.hpp"
#include "chem/ci/strings.hpp"
#include "chem/common/aligned.hpp"

namespace outcore::chem::ci {

/// Pairs (s, q) of a beta orbital s and an alpha orbital q whose irreps multiply to that of the pair. All q
/// of one s are neighbours.
struct PairLayout {
  PairLayout(const Orbitals& orbitals, int irrep);

  /// Place of the pair (s, q): base[irrep of s] + (s - first(irrep of s)) * count(irrep of q) + (q -
  /// first(irrep of q)).
  std::array<int, max_groups> base{};
  std::vector<int> s, q;  ///< by place
  [[nodiscard]] int size() const noexcept { return int(s.size()); }

  // Pairs s != q occur twice: `left` has the place of (s, q), `right` that of (q, s). They combine to left +
  // right and to left - right. Pairs s == q, at the end of `left` and `right`, combine to left + right only.
  std::vector<std::int32_t> left, right;
  int minus = 0;  ///< number of combinations left - right
  [[nodiscard]] int plus() const noexcept { return int(left.size()); }
};

/// V(pq|rs) of an alpha and a beta electron: rows are created pairs (r, p), columns annihilated pairs (s, q).
/// Matrices are row-major, without gaps.
template <class Real>
struct PairMatrix {
  Aligned<Real> full;  ///< [size][size]
  /// [plus][plus] and [minus][minus]: full = plus + minus for combinations D+ = D_left + D_right and D- =
  /// D_left - D_right; `plus` times D+ and `minus` times D- are half of the sum and half of the difference of
  /// the results at left and right. Empty if the integrals lack the symmetry.
  Aligned<Real> plus, minus;
};

template <class Real>
[[nodiscard]] PairMatrix<Real> pair_matrix(const PairLayout& layout, const Integrals& integrals);

/// Pairs of different orbitals q > s of one spin whose irreps multiply to that of the pair, with the
/// antisymmetric integrals V(pq|rs) - V(ps|rq) as a matrix of (p, r) and (q, s).
/// With one electron in all, "pairs" are single orbitals (q = s), and the matrix is the one-electron
/// operator.
struct SamePairs {
  SamePairs(const Orbitals& orbitals, int irrep, const Integrals& integrals, bool beta);
  std::vector<int> s, q;
  std::vector<double> matrix;
  [[nodiscard]] int size() const noexcept { return int(s.size()); }
};

}  // namespace outcore::chem::ci
