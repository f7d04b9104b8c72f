// How well each integral is kept, and what that does to the energy.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "outcore/chem/basis.hpp"

namespace outcore::chem {

class Densities;
struct Slab;

/// The largest step to which the integrals of a quartet of shells may be rounded: they are kept to within
/// half of it. Immutable, shared by all threads.
///
/// The energy E = sum Gamma_pqrs (pq|rs) takes the error of an integral times its Gamma, and many small
/// errors of random sign add up as squares: for the fewest bytes at a given error of the energy, a step is in
/// inverse proportion to Gamma. What is known of Gamma beforehand comes from a crude density.
class Accuracy {
 public:
  /// The same step, 0 < step <= 1, for all. Throws Error(EINVAL).
  explicit Accuracy(double step);

  /// Steps `step` / w, at most `largest_step`, where w is the root mean square of
  ///
  ///   4 D_ij D_kl - D_ik D_jl - D_il D_jk
  ///
  /// over the quartet, the terms taken as independent, from the root mean square of each shell block of crude
  /// densities, `densities` [count][n][n] (caller's order of functions; sum of both spins): what one of them
  /// leaves out another may have, so their squares are added. A block counts at least a tenth of what its
  /// diagonal blocks allow (|D_pq|^2 <= D_pp D_qq), and these at least 1e-3.
  Accuracy(const Basis& basis, const double* densities, std::size_t count, double step, double largest_step);

  [[nodiscard]] double step(int i, int j, int k, int l) const noexcept {
    if (blocks_.empty()) return largest_;
    const double coulomb = 16 * square(i, j) * square(k, l);
    const double exchange = square(i, k) * square(j, l) + square(i, l) * square(j, k);
    const double step = step_ / std::sqrt(coulomb + exchange);
    return step < largest_ ? step : largest_;
  }
  /// No step is smaller.
  [[nodiscard]] double least() const noexcept { return least_; }
  [[nodiscard]] double largest() const noexcept { return largest_; }

 private:
  [[nodiscard]] double square(int p, int q) const noexcept {
    return blocks_[std::size_t(p) * shells_ + std::size_t(q)];
  }

  double step_, largest_, least_;
  std::size_t shells_ = 0;
  std::vector<double> blocks_;  // mean squares of the density's shell blocks
};

/// What the rounding of stored integrals does to the energy of a Hartree-Fock density. Errors of stored
/// values are independent of each other and uniform within half a step on both sides (see SlabCodec), so
/// their sum has the
///
///   variance = sum over stored quartets of step^2 / 12 * |4 D_ij D_kl - D_ik D_jl - D_il D_jk|^2
///
/// where |.|, the Frobenius norm over the quartet, is bounded by those of the shell blocks of D, by the
/// triangle inequality: an upper bound in closed form. With two spins the exchange terms are 2 D^s_ik D^s_jl
/// of each, the first one has the sum of both. One for each thread; add them up.
class EnergyError {
 public:
  /// One density: of closed shells, both spins together. Two: of each spin. Throws Error(EINVAL) otherwise.
  EnergyError(const Basis& basis, const Densities& densities);

  void add(const Slab& slab);
  void add(const EnergyError& other);

  [[nodiscard]] double variance() const noexcept { return variance_; }
  /// If all errors had the worst sign and size.
  [[nodiscard]] double worst() const noexcept { return worst_; }

 private:
  const Basis& basis_;
  std::size_t shells_;
  std::vector<double> total_;               // norms of shell blocks
  std::vector<std::vector<double>> spins_;  // the same of what exchanges
  double exchange_factor_;
  double variance_ = 0, worst_ = 0;
};

}  // namespace outcore::chem
