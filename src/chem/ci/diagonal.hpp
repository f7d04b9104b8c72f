// Diagonal elements of an operator over determinants, computed when they are needed.
#pragma once

#include "chem/ci/integrals.hpp"
#include "chem/ci/panel.hpp"
#include "chem/ci/space.hpp"

namespace outcore::chem::ci {

/// d(I, J) = energy of alpha string I + energy of beta string J + sum over their electrons of J_pq.
class Diagonal {
 public:
  Diagonal(const Space& space, const Integrals& integrals);

  /// tile[i, j] = d(alpha + i, beta + j).
  template <class Element>
  void fill(const Space& space, std::int64_t alpha, std::int64_t beta, const View<Element>& tile) const;

 private:
  int orbitals_;
  double constant_;
  std::vector<double> coulomb_;       // [alpha orbital][beta orbital]
  std::vector<double> alpha_, beta_;  // energies of strings
};

}  // namespace outcore::chem::ci
