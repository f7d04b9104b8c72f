// Determinants: pairs of an alpha and a beta string whose irreps multiply to that of the state.
#pragma once

#include "chem/ci/strings.hpp"

namespace outcore::chem::ci {

/// The determinants, the same for all vectors of a symmetry. Immutable.
struct OUTCORE_SIBLING Space {
  /// `folded`: vectors are C = +-C^T, and kernels compute half of an operator; see kernel.hpp. Throws
  /// std::invalid_argument if the electrons do not fit into the orbitals, or `target` is no irrep.
  Space(Orbitals orbitals, int alpha_electrons, int beta_electrons, int target, bool folded);

  /// Number of pairs of strings of the right symmetry; with folding, (I, J) and (J, I) both count.
  [[nodiscard]] std::int64_t determinants() const noexcept;
  [[nodiscard]] int electrons() const noexcept { return alpha.electrons() + beta.electrons(); }
  /// The first beta hole of an irrep that meets an alpha hole; the alpha hole meets all from it on, to the
  /// end of the sector. Without folding these are all; with folding, those that are at least the alpha hole
  /// by value.
  [[nodiscard]] std::int64_t first_beta_hole(int irrep, std::uint64_t alpha_hole) const noexcept;
  /// The first beta string that an alpha hole meets, in the same way: with folding, those that contain a beta
  /// hole of at least its value.
  [[nodiscard]] std::int64_t first_beta(int irrep, std::uint64_t alpha_hole) const {
    return folded ? beta.first_reached(irrep, alpha_hole) : beta.offset(irrep);
  }

  Orbitals orbitals;
  int target;
  bool folded;
  Strings alpha, beta;
  std::vector<std::uint64_t> alpha_holes;  ///< alpha holes: N-1 electron strings, by value
  Strings beta_holes;
};

}  // namespace outcore::chem::ci
