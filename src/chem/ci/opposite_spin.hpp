// The part of an operator that acts on an alpha and a beta electron, by projection onto N-1 electron strings
// of each spin:
//
//   D(s, q) = <K_alpha K_beta| a_q b_s |C>,  E(r, p) = sum_qs V(pq|rs) D(s, q),  T += a+_p b+_r E(r, p) |K K>
//
// For one K_alpha, batches of K_beta give the columns of matrices. There are two ways to multiply them. If
// alpha and beta electrons have the same orbitals, D(s, q) + D(q, s) and D(s, q) - D(q, s) can use separate,
// smaller matrices of integrals. The other way leaves out the q and p that K_alpha occupies. For each K_alpha
// the way with fewer operations is taken.
#pragma once

#include <memory>
#include <mutex>

#include "base/blas.hpp"
#include "chem/ci/pair_matrix.hpp"
#include "chem/ci/panel.hpp"
#include "chem/ci/run_kernels.hpp"

namespace outcore::chem::ci {

/// Operations (multiplications and additions) of the matrix products.
struct Operations {
  double pairs;       ///< with sums and differences of pairs
  double restricted;  ///< without orbitals that are occupied
};

class OppositeSpin {
 public:
  OppositeSpin(std::shared_ptr<const Space> space, const Integrals& integrals, Blas blas);

  /// Adds to t the part of alpha_holes [first, last). In folded spaces only K_beta >= K_alpha by value count,
  /// and those that are equal count half. See Kernel::opposite_spin.
  template <class Real>
  void apply(const Panel& x, Panel& t, std::int64_t first, std::int64_t last, int threads) const;

  /// sums[p][q][r][s] += <bra| a+_p b+_r b_s a_q |ket> of alpha_holes [first, last), in the order of `apply`.
  template <class Real>
  void add_density(const Panel& bra, const Panel& ket, double* sums, std::int64_t first, std::int64_t last,
                   int threads) const;

  [[nodiscard]] Operations operations(std::int64_t hole) const;
  [[nodiscard]] bool takes_pairs(const Operations& operations) const noexcept {
    return same_orbitals_ && operations.pairs <= operations.restricted;
  }
  [[nodiscard]] double fewest_operations(std::int64_t hole) const {
    const Operations both = operations(hole);
    return takes_pairs(both) ? both.pairs : both.restricted;
  }

 private:
  template <class Real>
  class Task;
  template <class Real>
  class DensityTask;
  template <class Real>
  [[nodiscard]] const std::vector<PairMatrix<Real>>& matrices() const;

  std::shared_ptr<const Space> space_;
  Blas blas_;
  bool same_orbitals_;
  std::vector<PairLayout> layouts_;  // by irrep of the pair
  std::vector<PairMatrix<double>> exact_;
  mutable std::once_flag rounded_made_;
  mutable std::vector<PairMatrix<float>> rounded_;
  std::vector<Run>
      beta_runs_;  // [beta hole][orbital]: the string that it creates; one after the last if occupied
};

}  // namespace outcore::chem::ci
