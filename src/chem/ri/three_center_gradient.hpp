// Derivatives of three-centre integrals (mn|P) with respect to the positions of atoms, summed with given
// factors as they are computed.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/sibling.hpp"
#include "chem/common/basis.hpp"
#include "chem/ri/three_center.hpp"

namespace outcore::chem {

/// Shells of an orbital basis, followed by those of an auxiliary one; immutable, shared by all threads.
class OUTCORE_SIBLING ThreeCenterGradient {
 public:
  struct Functions {
    Libcint::Integral int3c2e_ip1 = nullptr;          ///< int3c2e_ip1_cart or int3c2e_ip1_sph
    Libcint::MakeOptimizer make_optimizer = nullptr;  ///< int3c2e_ip1_optimizer
    Libcint::DeleteOptimizer delete_optimizer = nullptr;
  };

  /// As ThreeCenter; `add` uses the same `pairs` and columns. Throws Error(EINVAL).
  ThreeCenterGradient(std::span<const int> atm, std::span<const int> bas, std::span<const double> env,
                      int orbital_shells, bool cartesian, const Functions& functions);

  [[nodiscard]] int atoms() const noexcept { return atoms_; }
  [[nodiscard]] int orbital_shells() const noexcept { return orbital_shells_; }
  [[nodiscard]] int auxiliary_shells() const noexcept { return int(first_.size()) - 1 - orbital_shells_; }
  /// First function of an auxiliary shell; for the shell after the last, the number of functions.
  [[nodiscard]] int first_auxiliary(int shell) const noexcept {
    return first_[std::size_t(orbital_shells_ + shell)] - first_[std::size_t(orbital_shells_)];
  }
  [[nodiscard]] int size(int orbital_shell) const noexcept {
    return first_[std::size_t(orbital_shell) + 1] - first_[std::size_t(orbital_shell)];
  }

  /// gradient[atom][x] += sum over P of the auxiliary shells [first, last), and all m and n of `pairs` in
  /// both orders, of z[P][mn] d(mn|P)/dx (Hartree/Bohr for z of a two-particle density). `z`: one row for
  /// each P, `stride` doubles apart, with the element of a symmetric matrix in the column of mn. The
  /// derivative by the atom of P is minus the sum of the others, because a shift of all atoms changes
  /// nothing. Throws Error(EINVAL) for invalid shells.
  void add(std::span<const PairColumns> pairs, int first, int last, const double* z, std::size_t stride,
           double* gradient, int threads) const;

 private:
  [[nodiscard]] int atom(int shell) const noexcept;
  /// (nabla i j|k) for libcint's shells; false if all are zero.
  bool integrals(int i, int j, int k, double* out, double* work) const;

  Functions functions_;
  mutable std::vector<int> atm_, bas_;  // libcint takes them as non-const and only reads them
  mutable std::vector<double> env_;
  std::vector<int> first_;
  int orbital_shells_, atoms_, shells_;
  std::size_t largest_orbital_ = 0, largest_auxiliary_ = 0, work_ = 0;
  std::shared_ptr<void> optimizer_;
};

}  // namespace outcore::chem
