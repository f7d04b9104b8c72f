// Contraction of integral slabs with density matrices to Coulomb and exchange matrices.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/sibling.hpp"
#include "chem/hf/slab.hpp"

namespace outcore::chem {

/// Density matrices in the basis's order of functions, and their largest elements for each pair of shells.
class OUTCORE_SIBLING Densities {
 public:
  /// `matrices` [count][n][n], row-major, in the caller's order of functions; copied. `symmetry` of each:
  /// symmetric (+1) or antisymmetric (-1).
  Densities(const Basis& basis, const double* matrices, std::span<const int> symmetry);

  [[nodiscard]] std::size_t count() const noexcept { return symmetry_.size(); }
  [[nodiscard]] int symmetry(std::size_t d) const noexcept { return symmetry_[d]; }
  [[nodiscard]] const double* matrix(std::size_t d) const noexcept { return matrices_.data() + d * n_ * n_; }
  [[nodiscard]] DensityBounds bounds(const Basis& basis) const;

 private:
  std::size_t n_;
  std::vector<int> symmetry_;
  std::vector<double> matrices_;
};

/// Accumulates J and K from slabs that cover each unique integral once. One object for each thread; add them
/// up, then finish.
///
///   J_pq = sum_rs (pq|rs) D_rs        K_pq = sum_rs (pr|qs) D_rs
///
/// J of an antisymmetric density is zero.
class OUTCORE_SIBLING CoulombExchange {
 public:
  /// Both must outlive this.
  CoulombExchange(const Basis& basis, const Densities& densities);

  void add(const Slab& slab);
  void add(const CoulombExchange& other);

  /// Writes J and K, [count][n][n] each in the caller's order of functions, from what was added, times
  /// `scale` (the unit of the values).
  void finish(double scale, double* coulomb, double* exchange) const;

  [[nodiscard]] static std::size_t bytes(const Basis& basis, std::size_t densities);

 private:
  void contract(const Slab& slab, std::size_t d);

  const Basis& basis_;
  const Densities& densities_;
  std::size_t n_;
  std::vector<double> coulomb_, exchange_;  // one triangle of each, in the sense of finish()
  std::vector<double> space_;
};

}  // namespace outcore::chem
