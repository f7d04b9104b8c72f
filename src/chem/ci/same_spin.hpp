// The part of an operator that acts on two electrons of one spin, the one of a panel's columns:
//
//   T(:, L+p+r) += sum over q > s, both empty in L, of [V(pq|rs) - V(ps|rq)] sign sign C(:, L+q+s)
//
// for all N-2 electron strings L. Slabs of rows are transposed, so that elements that are moved together are
// neighbours.
#pragma once

#include <memory>
#include <mutex>

#include "base/blas.hpp"
#include "chem/ci/pair_matrix.hpp"
#include "chem/ci/panel.hpp"
#include "chem/ci/run_kernels.hpp"

namespace outcore::chem::ci {

class SameSpin {
 public:
  SameSpin(const Space& space, const Integrals& integrals, bool beta, Blas blas);

  /// t += the operator on x, for all home rows of the panels. See Kernel::same_spin.
  template <class Real>
  void apply(const Panel& x, Panel& t, int threads) const;

  /// sums[p][q][r][s] += <bra| p+ r+ s q |ket> of the columns' spin, for all home rows of the panels. Needs
  /// two or more electrons in all.
  template <class Real>
  void add_density(const Panel& bra, const Panel& ket, double* sums, int threads) const;

  /// Multiplications and additions for one row whose columns have this irrep.
  [[nodiscard]] double operations(int irrep) const;

 private:
  struct Slab {
    int irrep;                 // of the rows
    std::int64_t first, last;  // of its home rows
  };
  template <class Real>
  class Task;
  template <class Real>
  class DensityTask;
  template <class Real>
  [[nodiscard]] const std::vector<std::vector<Real>>& matrices() const;
  [[nodiscard]] std::vector<Slab> slabs(const Panel& panel, int threads) const;

  const Strings* strings_;
  int orbitals_, groups_, target_;
  Blas blas_;
  std::vector<SamePairs> orbital_pairs_;  // by irrep of the pair; their matrices are in exact_
  std::vector<std::vector<double>> exact_;
  mutable std::once_flag rounded_made_;
  mutable std::vector<std::vector<float>> rounded_;
  // For each L, by irrep of the pair: the strings that pairs create, and the places of the pairs in the
  // matrix.
  std::vector<int> irreps_;            // of L
  std::vector<std::int64_t> offsets_;  // [L * groups + irrep of the pair]
  std::vector<Run> created_;
  std::vector<std::int32_t> pairs_;
};

}  // namespace outcore::chem::ci
