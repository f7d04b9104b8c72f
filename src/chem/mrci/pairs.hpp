// Pairs of orbitals for two electrons that are added to an internal determinant, and the integrals between
// the pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "chem/common/aligned.hpp"
#include "chem/mrci/space.hpp"

namespace outcore::chem::mrci {

/// Integrals of orbitals in the order of a space: internal, then external ones. A view.
struct Integrals {
  int orbitals, internals;
  int alpha_electrons, beta_electrons;
  double spin_shift;  ///< the operator is H + spin_shift (S^2 - M (M + 1)), M = |alpha - beta| / 2
  double constant;    ///< Hartree; added to the operator
  const double* one;  ///< [n][n]
  /// (pq|rs) [pq][rs] for pairs pq with an internal orbital: first p >= q of internal ones, then for each
  /// external p all internal q; rs = r (r + 1) / 2 + s for r >= s.
  const double* rows;

  /// (pq|rs); pq or rs must have an internal orbital.
  [[nodiscard]] double bare(int p, int q, int r, int s) const noexcept;
  /// The integral between two electrons with the one-electron part, made from the bare integral; see
  /// chem/ci/integrals.hpp.
  [[nodiscard]] double between(double bare, int p, int q, int r, int s) const noexcept;
  /// The same for an alpha electron that goes from q to p and a beta electron that goes from s to r.
  [[nodiscard]] double opposite(double bare, int p, int q, int r, int s) const noexcept;
  [[nodiscard]] double between(int p, int q, int r, int s) const noexcept {
    return between(bare(p, q, r, s), p, q, r, s);
  }
  [[nodiscard]] double opposite(int p, int q, int r, int s) const noexcept {
    return opposite(bare(p, q, r, s), p, q, r, s);
  }
};

/// Pairs (q, s) of one irrep, q of the first electron and s of the second, in this order: both internal; q
/// external and s internal, for each s; q internal and s external, for each q; both external, in the order of
/// a record of `alpha_beta`.
struct OppositePairs {
  OppositePairs(const Space& space, int irrep, const Integrals& integrals);

  [[nodiscard]] int internal(int q, int s) const noexcept { return internal_[std::size_t(q * u + s)]; }
  /// Row of the first external q with this s, and of the first external s with this q.
  [[nodiscard]] int first_external(int s) const noexcept { return first_[std::size_t(s)]; }
  [[nodiscard]] int second_external(int q) const noexcept { return second_[std::size_t(q)]; }

  int irrep, u;
  int mixed;                         ///< pairs with an internal orbital
  int external;                      ///< pairs of external ones
  std::vector<int> firsts, seconds;  ///< orbitals of each pair
  Aligned<double> matrix;            ///< [mixed][mixed]; from the row to the column
  Aligned<double> to_external;       ///< [mixed][external]

 private:
  std::vector<int> internal_, first_, second_;
};

/// Pairs q > s of electrons of one spin: both internal; q external and s internal, for each s; both external,
/// in the order of a record of `alpha_alpha`.
struct EqualPairs {
  EqualPairs(const Space& space, int irrep, const Integrals& integrals);

  [[nodiscard]] int internal(int q, int s) const noexcept { return internal_[std::size_t(q * u + s)]; }
  [[nodiscard]] int first_external(int s) const noexcept { return first_[std::size_t(s)]; }

  int irrep, u;
  int mixed, external;
  Aligned<double> matrix;       ///< [mixed][mixed]
  Aligned<double> to_external;  ///< [mixed][external]

 private:
  std::vector<int> internal_, first_;
};

}  // namespace outcore::chem::mrci
