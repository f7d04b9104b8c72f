// Determinants: pairs of an alpha and a beta string whose irreps multiply to that of the state.
#pragma once

#include "chem/ci/strings.hpp"

namespace outcore::chem::ci {

/// What is the same for all vectors of a state. Immutable.
struct OUTCORE_SIBLING Space {
  /// `folded`: vectors are C = +-C^T, and operators are given as half of what they are; see kernel.hpp.
  /// Throws std::invalid_argument if the electrons do not fit into the orbitals, or `target` is no irrep.
  Space(Orbitals orbitals, int alpha_electrons, int beta_electrons, int target, bool folded);

  /// Pairs of strings of the right symmetry; with folding, both (I, J) and (J, I).
  [[nodiscard]] std::int64_t determinants() const noexcept;
  [[nodiscard]] int electrons() const noexcept { return alpha.electrons() + beta.electrons(); }
  /// Holes of beta electrons of an irrep that meet a hole of alpha electrons: all, or with folding those that
  /// are at most that hole by value. They are the first of their sector.
  [[nodiscard]] std::int64_t beta_holes_until(int irrep, std::uint64_t alpha_hole) const noexcept;

  Orbitals orbitals;
  int target;
  bool folded;
  Strings alpha, beta;
  std::vector<std::uint64_t> alpha_holes;  ///< alpha strings of one electron less, by value
  Strings beta_holes;
};

}  // namespace outcore::chem::ci
