// Products of a Hamiltonian with parts of vectors of one symmetry, for Full-CI.
#pragma once

#include <memory>

#include "chem/ci/diagonal.hpp"
#include "chem/ci/opposite_spin.hpp"
#include "chem/ci/same_spin.hpp"

namespace outcore::chem::ci {

/// A hole is an N-1 electron string of alpha electrons. Not folded: H C = opposite-spin part (over all holes)
/// + same-spin part of the beta electrons (on panels) + that of the alpha electrons (on transposed panels).
/// Folded, C = P C^T: H C = T + P T^T, with T = opposite-spin part (over all holes) + same-spin part of the
/// beta electrons. Any thread; several calls may run at a time if each has its own panels.
class OUTCORE_SIBLING Kernel {
 public:
  Kernel(std::shared_ptr<const Space> space, const Integrals& integrals, Blas blas);

  [[nodiscard]] const std::shared_ptr<const Space>& space() const noexcept { return space_; }

  /// Indices of the alpha strings that holes [first, last) reach, ascending. Ranges are ranges of
  /// Space::alpha_holes.
  [[nodiscard]] std::vector<std::int64_t> rows_of(std::int64_t first, std::int64_t last) const;
  /// For each of these rows the first beta string that a hole of the range meets there, or the end of the
  /// sector: the holes meet all strings from it on. Without folding it is the first of the sector.
  [[nodiscard]] std::vector<std::int64_t> begins_of(std::int64_t first, std::int64_t last) const;

  /// Adds to t the opposite-spin part of H x, of holes [first, last). Both panels must have their rows, from
  /// the columns on that the holes meet.
  void opposite_spin(const Panel& x, Panel& t, std::int64_t first, std::int64_t last, int threads) const;
  /// Adds to t the part of H x of two electrons of the columns' spin, for home rows, which must be the same
  /// in both panels.
  void same_spin(const Panel& x, Panel& t, int threads) const;

  /// sums[p][q][r][s] += <bra| a+_p b+_r b_s a_q |ket>, a of alpha and b of beta electrons, of holes
  /// [first, last). Folded, the density is sums[p][q][r][s] + sums[r][s][p][q]. Panels as for opposite_spin.
  void opposite_spin_density(const Panel& bra, const Panel& ket, double* sums, std::int64_t first,
                             std::int64_t last, int threads) const;
  /// sums[p][q][r][s] += <bra| a+_p a+_r a_s a_q |ket> of the columns' spin. Panels as for same_spin. Needs
  /// two or more electrons in all.
  void same_spin_density(const Panel& bra, const Panel& ket, double* sums, int threads) const;

  /// tile[i, j] = <I J|H|I J>, I = alpha + i, J = beta + j.
  template <class Element>
  void diagonal(std::int64_t alpha, std::int64_t beta, const View<Element>& tile) const;

  /// Floating-point operations of the products of matrices.
  [[nodiscard]] double opposite_spin_flops(std::int64_t first, std::int64_t last) const;
  [[nodiscard]] double same_spin_flops(const Panel& panel) const;

 private:
  struct Reached {
    std::int64_t row;
    std::uint64_t hole;  // for each row the lowest hole that reaches it
  };
  [[nodiscard]] std::vector<Reached> reached(std::int64_t first, std::int64_t last) const;
  void check_range(std::int64_t first, std::int64_t last) const;
  void check_panels(const Panel& x, const Panel& t, const char* what) const;
  void check_opposite(const Panel& x, const Panel& t, std::int64_t first, std::int64_t last) const;
  void check_same(const Panel& x, const Panel& t) const;

  std::shared_ptr<const Space> space_;
  OppositeSpin opposite_;
  SameSpin alpha_, beta_;
  Diagonal diagonal_;
};

}  // namespace outcore::chem::ci
