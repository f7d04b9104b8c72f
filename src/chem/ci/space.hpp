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
  /// Holes of beta electrons of an irrep that meet a hole of alpha electrons are those from this one on, to
  /// the end of their sector: all, or with folding those that are at least that hole by value.
  [[nodiscard]] std::int64_t first_beta_hole(int irrep, std::uint64_t alpha_hole) const noexcept;
  /// Beta strings that a hole of alpha electrons meets, in the same way: with folding those that contain a
  /// hole that is at least that one.
  [[nodiscard]] std::int64_t first_beta(int irrep, std::uint64_t alpha_hole) const {
    return folded ? beta.first_reached(irrep, alpha_hole) : beta.offset(irrep);
  }

  Orbitals orbitals;
  int target;
  bool folded;
  Strings alpha, beta;
  std::vector<std::uint64_t> alpha_holes;  ///< alpha strings of one electron less, by value
  Strings beta_holes;
};

}  // namespace outcore::chem::ci
