// Pairs of orbitals that two electrons of an internal determinant are put into, and the integrals between
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "chem/ci/aligned.hpp"
#include "chem/ci/mrci_space.hpp"

namespace outcore::chem::ci {

/// Integrals of orbitals in the order of a space: internal, then external ones. A view; needed only while
/// tables are made of it.
struct MrciIntegrals {
  int orbitals;
  int alpha_electrons, beta_electrons;
  double spin_shift;    ///< the operator is H + spin_shift (S^2 - M (M + 1)), M = |alpha - beta| / 2
  double constant;      ///< Hartree; is added to the operator
  const double* one;    ///< [n][n]
  const double* pairs;  ///< (pq|rs) [pq][rs], pq = p (p + 1) / 2 + q for p >= q

  [[nodiscard]] double bare(int p, int q, int r, int s) const noexcept;
  /// With the one-electron part, between two electrons; see chem/ci/integrals.hpp.
  [[nodiscard]] double operator()(int p, int q, int r, int s) const noexcept;
  /// The same, of an alpha electron that goes from q to p and a beta electron from s to r.
  [[nodiscard]] double opposite(int p, int q, int r, int s) const noexcept;
};

/// Pairs (q, s) of one irrep, q of the first electron and s of the second, in this order: both internal; q
/// external and s internal, for each s; q internal and s external, for each q; both external, as a record of
/// `alpha_beta` has them.
struct OppositePairs {
  OppositePairs(const MrciSpace& space, int irrep, const MrciIntegrals& integrals);

  [[nodiscard]] int internal(int q, int s) const noexcept { return internal_[std::size_t(q * u + s)]; }
  /// Row of the first external q with this s, of the first external s with this q.
  [[nodiscard]] int first_external(int s) const noexcept { return first_[std::size_t(s)]; }
  [[nodiscard]] int second_external(int q) const noexcept { return second_[std::size_t(q)]; }

  int irrep, u;
  int mixed;                                ///< pairs with an internal orbital
  int external;                             ///< pairs of external ones
  int even, odd;                            ///< sums and differences of external pairs, c >= d and c > d
  std::vector<int> firsts, seconds;         ///< orbitals of each pair
  Aligned<double> matrix;                   ///< [mixed][mixed]
  Aligned<double> to_external;              ///< [mixed][external]
  Aligned<double> even_matrix, odd_matrix;  ///< [even][even], [odd][odd]; from the row to the column

 private:
  std::vector<int> internal_, first_, second_;
};

/// Pairs q > s of electrons of one spin: both internal; q external and s internal, for each s; both external,
/// as a record of `alpha_alpha` has them.
struct EqualPairs {
  EqualPairs(const MrciSpace& space, int irrep, const MrciIntegrals& integrals);

  [[nodiscard]] int internal(int q, int s) const noexcept { return internal_[std::size_t(q * u + s)]; }
  [[nodiscard]] int first_external(int s) const noexcept { return first_[std::size_t(s)]; }

  int irrep, u;
  int mixed, external;
  Aligned<double> matrix;  ///< [mixed + external][mixed + external]

 private:
  std::vector<int> internal_, first_;
};

}  // namespace outcore::chem::ci
