// Contraction of integral slabs with density matrices to Coulomb and exchange matrices.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "outcore/chem/slab.hpp"

namespace outcore::chem {

/// Accumulates J and K for one or more density matrices from slabs that cover each unique integral once.
/// One for each thread; add them up, then finish.
///
///   J_pq = sum_rs (pq|rs) D_rs        K_pq = sum_rs (pr|qs) D_rs
///
/// Each D must be symmetric (symmetry +1) or antisymmetric (-1; its J is zero).
class CoulombExchange {
 public:
  /// `densities`: [count][n][n], row-major, symmetric or antisymmetric as `symmetry` says; must outlive this.
  CoulombExchange(const Basis& basis, const double* densities, std::span<const int> symmetry);

  /// Adds one slab, the values times `scale`.
  void add(const Slab& slab);
  void add(const CoulombExchange& other);

  /// Writes J and K, [count][n][n] each, from what was added, times `scale` (the unit of the values).
  void finish(double scale, double* coulomb, double* exchange) const;

  [[nodiscard]] static std::size_t bytes(const Basis& basis, std::size_t densities);

 private:
  void contract(const Slab& slab, std::size_t d);

  const Basis& basis_;
  const double* densities_;
  std::vector<int> symmetry_;
  std::size_t n_;
  std::vector<double> coulomb_, exchange_;  // one triangle of each, in the sense of finish()
  std::vector<double> space_;
};

}  // namespace outcore::chem
