// One pass over a tile of all vectors of an eigenvalue search: new approximations, their residuals, what
// corrects them, and all dot products of the next small problem.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/sibling.hpp"

namespace outcore::chem::ci {

/// The tile of each vector, `elements` each. A vector has two tiles, its own and that of H times it; states
/// have elements of type X, the other vectors of the small space those of type W.
///
/// k states x_i, q vectors w_j. In place of them come
///
///   x_i = sum_j to_states[i][j] x_j + sum_j to_states[i][k + j] w_j      and H x_i the same way
///   w_i = sum_j to_vectors[i][j] w_j, for i < kept, if `collapses`         and H w_i
///
/// and for each state i of `active`, in turn, t = r / (E_i - d), r = H x_i - E_i x_i; no denominator is
/// smaller than `smallest`.
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
  std::size_t kept;        // vectors that are there afterwards; q unless it collapses
  const double* energies;  // [k]
  std::span<const int> active;
  double smallest;
  /// Not 0: the tile is a square, and what is below its diagonal is copied above, times this (+1 or -1); what
  /// is on it becomes zero for -1.
  int parity;
};

/// The side of a square tile, 0 if it is none.
[[nodiscard]] OUTCORE_SIBLING std::size_t side_of_square(std::size_t elements) noexcept;

/// Adds to `sums`, of b = (x, w, t) as they are stored: <b_i|b_j>, <b_i|H b_j> for j of x and w, so that
/// there are [b][b + x + w] numbers; then |r_i|^2 and sum (d - E_i) x_i^2 of every state. Any thread.
template <class X, class W>
OUTCORE_SIBLING void correct(const CorrectionTile<X, W>& tile, double* sums);

/// Dot products [a][b] of tiles, added to `sums`. Any thread.
template <class A, class B>
OUTCORE_SIBLING void add_dots(std::span<const A* const> a, std::span<const B* const> b, std::size_t elements,
                              double* sums);

/// Rounds to whole multiples of a step, which is a power of two; no zero has a sign. What was added goes to
/// `added`, unless that is null. Returns the sum of its squares. Any thread.
OUTCORE_SIBLING double round_to(double* values, double* added, double step, std::size_t elements);

}  // namespace outcore::chem::ci
