// The accuracy of each stored integral, and the resulting error of the energy.
#pragma once

#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/sibling.hpp"
#include "chem/common/basis.hpp"

namespace outcore::chem {

class Densities;
struct Slab;

/// The largest step to which the integrals of a quartet of shells may be rounded (their error is at most half
/// of it), and the limit below which they may be left out at random (see Screening). Immutable, shared by all
/// threads.
///
/// The error of an integral enters the energy E = sum Gamma_pqrs (pq|rs) times its Gamma, and many small
/// errors of random sign add up as squares. So steps in inverse proportion to Gamma take the fewest bytes for
/// a given error of the energy. A crude density gives an estimate of Gamma beforehand.
class OUTCORE_SIBLING Accuracy {
 public:
  /// The same step, 0 < step <= 1, for all integrals, and half of it as the limit. Throws Error(EINVAL).
  explicit Accuracy(double step);

  /// Steps `step` / w, at most `max_step`, where w is the root mean square of
  ///
  ///   4 D_ij D_kl - D_ik D_jl - D_il D_jk
  ///
  /// over the quartet, with the terms taken as independent. It uses the root mean square of each shell block
  /// of crude densities, `densities` [count][n][n] (caller's order of functions; sum of both spins). The
  /// squares of all densities are added, as one may have an element that another lacks. A block counts at
  /// least a tenth of the bound by its diagonal blocks (|D_pq|^2 <= D_pp D_qq), and these at least 1e-3.
  /// Limits are a sixteenth of the steps. Reason: a value left out at random adds the square of the limit to
  /// the energy's variance, a rounded value only a twelfth of the square of its step, which for most values
  /// is much finer than the largest step.
  Accuracy(const Basis& basis, const double* densities, std::size_t count, double step, double max_step);

  [[nodiscard]] double step(int i, int j, int k, int l) const noexcept {
    if (blocks_.empty()) return largest_;
    const double coulomb = 16 * square(i, j) * square(k, l);
    const double exchange = square(i, k) * square(j, l) + square(i, l) * square(j, k);
    const double step = step_ / std::sqrt(coulomb + exchange);
    return step < largest_ ? step : largest_;
  }
  /// Quartets whose values are all smaller than this limit are left out at random.
  [[nodiscard]] double limit(int i, int j, int k, int l) const noexcept { return share_ * step(i, j, k, l); }
  /// The limit over the step.
  [[nodiscard]] double share() const noexcept { return share_; }
  /// No step is smaller.
  [[nodiscard]] double least() const noexcept { return least_; }
  [[nodiscard]] double largest() const noexcept { return largest_; }

 private:
  [[nodiscard]] double square(int p, int q) const noexcept {
    return blocks_[std::size_t(p) * shells_ + std::size_t(q)];
  }

  double step_, largest_, least_, share_;
  std::size_t shells_ = 0;
  std::vector<double> blocks_;  // mean squares of the density's shell blocks
};

/// The error of the energy of a Hartree-Fock density that comes from rounding stored integrals and leaving
/// some out. Errors of stored values are independent of each other and uniform within half a step on both
/// sides (see SlabCodec). Shells l of a slab that stand for others like them (see Screening) have independent
/// errors, too. So the error of the energy has the
///
///   variance = sum over stored quartets of step^2 / 12 * |g|^2 + sum over quartets kept at random of (g.v)^2
///
/// where g = 4 D_ij D_kl - D_ik D_jl - D_il D_jk is the derivative of the energy with respect to the values v
/// of a quartet (as they are used), |.| the Frobenius norm over the quartet. With two spins the first term
/// has the sum of both densities, and the exchange terms are 2 D^s_ik D^s_jl of each spin s. The second sum
/// is an unbiased estimate (Horvitz and Thompson, J. Am. Stat. Assoc. 47, 663 (1952)): a quartet that is kept
/// with probability p contributes (1 - p) / p of its square to the variance, and the sum sees it with 1 / p
/// of its value. One object for each thread; add them up.
class EnergyError {
 public:
  /// One density: of closed shells, both spins together. Two densities: one for each spin. Throws
  /// Error(EINVAL) otherwise. `basis` and `densities` must outlive this. `accuracy`: of stored slabs; null if
  /// there are none.
  EnergyError(const Basis& basis, const Densities& densities, std::shared_ptr<const Accuracy> accuracy);

  /// Adds a slab that was unpacked, or one that SlabMaker has made.
  void add(const Slab& slab);
  void add(const EnergyError& other);

  [[nodiscard]] double variance() const noexcept { return variance_; }
  /// The error (Hartree) if all errors had the worst sign and size; for integrals that were left out, an
  /// estimate.
  [[nodiscard]] double worst() const noexcept { return worst_; }
  /// The largest term in the second sum of the variance. If few terms dominate this sum, its uncertainty is
  /// of this size.
  [[nodiscard]] double largest() const noexcept { return largest_; }

 private:
  void gather(const Slab& slab);
  void add_values(const Slab& slab);

  const Basis& basis_;
  const Densities& densities_;
  std::shared_ptr<const Accuracy> accuracy_;
  std::vector<double> total_;  // density of both spins
  double variance_ = 0, worst_ = 0, largest_ = 0;
  // Rows of the densities over the slab's columns, [densities and their sum][i, j, k][functions]; and for
  // each column the square of g, g.v, and the largest |v|.
  std::vector<double> rows_, derivative_, squares_, products_, magnitudes_;
};

}  // namespace outcore::chem
