// One pass over a tile of all vectors of an eigenvalue search. It makes new approximations, their residuals,
// their corrections, and all dot products of the next small problem.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/sibling.hpp"

namespace outcore::chem::ci {

/// One tile of each vector, of `elements` elements. A vector v has two tiles: its own and that of H v. States
/// have elements of type X, the other vectors of the small space elements of type W.
///
/// There are k states x_i and q vectors w_j. They are replaced by
///
///   x_i = sum_j to_states[i][j] x_j + sum_j to_states[i][k + j] w_j      and H x_i the same way
///   w_i = sum_j to_vectors[i][j] w_j, for i < kept, if `collapses`         and H w_i
///
/// and each state i of `active`, in turn, gets a correction t = r / (E_i - d), r = H x_i - E_i x_i. The
/// magnitude of a denominator is at least `smallest`.
template <class X, class W>
struct CorrectionTile {
  std::size_t elements;
  std::vector<X*> states, h_states;
  std::vector<W*> vectors, h_vectors;
  std::vector<W*> corrections;
  const double* diagonal;
  const double* to_states;   // [k][k + q]
  const double* to_vectors;  // [kept][q]
  bool collapses;
  std::size_t kept;        // number of vectors w afterwards; q unless `collapses`
  const double* energies;  // [k]
  std::span<const int> active;
  double smallest;
  /// Not 0: the tile is a square. The elements below its diagonal, times parity (+1 or -1), are copied above
  /// it; the diagonal becomes zero for -1.
  int parity;
};

/// The side of a square tile; 0 if the tile is no square.
[[nodiscard]] OUTCORE_SIBLING std::size_t side_of_square(std::size_t elements) noexcept;

/// Updates a tile. Adds to `sums`, for b = (x, w, t) as stored: <b_i|b_j>, and <b_i|H b_j> for j of x and w,
/// so there are [b][b + x + w] numbers; then |r_i|^2 and sum (d - E_i) x_i^2 of every state. Any thread.
template <class X, class W>
OUTCORE_SIBLING void correct(const CorrectionTile<X, W>& tile, double* sums);

/// Dot products [a][b] of tiles, added to `sums`. Any thread.
template <class A, class B>
OUTCORE_SIBLING void add_dots(std::span<const A* const> a, std::span<const B* const> b, std::size_t elements,
                              double* sums);

/// Rounds values to whole multiples of `step`, a power of two; zeros become +0. `added`, unless null,
/// receives the changes. Returns the sum of their squares. Any thread.
OUTCORE_SIBLING double round_to(double* values, double* added, double step, std::size_t elements);

}  // namespace outcore::chem::ci
