// One- and two-electron integrals as one two-electron operator.
#pragma once

#include <array>
#include <cstddef>

namespace outcore::chem::ci {

/// The spins of the two electrons of an integral: both alpha, alpha and beta, both beta.
enum class Spins { aa, ab, bb };

/// H = 1/2 sum V(pq|rs) a+_p a+_r a_s a_q over all spins, exact for vectors of `electrons` electrons. With
/// two or more, V includes the one-electron part h: V(pq|rs) = (pq|rs) + (h_pq d_rs + d_pq h_rs) / (electrons
/// - 1). A view: the caller owns the memory, which is needed only until tables are made from it.
struct Integrals {
  int orbitals;
  int alpha_electrons, beta_electrons;
  bool same_orbitals;  ///< alpha and beta electrons have the same orbitals
  /// The operator is H + spin_shift (S^2 - M (M + 1)), M = |alpha - beta| / 2: states of more spin than M go
  /// up. Only for the same orbitals.
  double spin_shift;
  const double* one_alpha;  ///< [n][n]
  const double* one_beta;
  std::array<const double*, 3> two;  ///< [n][n][n][n], (pq|rs), by Spins; in ab, p and q are alpha

  /// V(pq|rs). With fewer than two electrons V lacks the one-electron part.
  [[nodiscard]] double operator()(Spins spins, int p, int q, int r, int s) const noexcept;
  [[nodiscard]] double one(bool beta, int p, int q) const noexcept {
    return (beta ? one_beta : one_alpha)[p * orbitals + q];
  }
  [[nodiscard]] double bare(Spins spins, int p, int q, int r, int s) const noexcept {
    const auto n = std::size_t(orbitals);
    return two[std::size_t(spins)]
              [((std::size_t(p) * n + std::size_t(q)) * n + std::size_t(r)) * n + std::size_t(s)];
  }
};

}  // namespace outcore::chem::ci
