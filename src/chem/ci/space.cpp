#include "chem/ci/space.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace outcore::chem::ci {
namespace {

int checked(int electrons, const Orbitals& orbitals) {
  if (electrons < 0 || electrons > orbitals.count())
    throw std::invalid_argument(std::to_string(electrons) + " electrons of one spin in " +
                                std::to_string(orbitals.count()) + " orbitals");
  return electrons;
}

}  // namespace

Space::Space(Orbitals orbitals_, int alpha_electrons, int beta_electrons, int target_, bool folded_)
    : orbitals(std::move(orbitals_)),
      target(target_),
      folded(folded_),
      alpha(orbitals, checked(alpha_electrons, orbitals)),
      beta(orbitals, checked(beta_electrons, orbitals)),
      alpha_holes(strings_by_value(orbitals.count(), alpha_electrons - 1)),
      beta_holes(orbitals, beta_electrons - 1) {
  if (target < 0 || target >= orbitals.groups())
    throw std::invalid_argument("irrep " + std::to_string(target) + " of the state is not in [0, " +
                                std::to_string(orbitals.groups()) + ")");
  if (folded && alpha_electrons != beta_electrons)
    throw std::invalid_argument("vectors fold only if there are as many alpha as beta electrons");
}

std::int64_t Space::determinants() const noexcept {
  std::int64_t sum = 0;
  for (int g = 0; g < orbitals.groups(); ++g) sum += alpha.count(g) * beta.count(g ^ target);
  return sum;
}

std::int64_t Space::first_beta_hole(int irrep, std::uint64_t alpha_hole) const noexcept {
  if (!folded) return beta_holes.offset(irrep);
  const auto sector =
      beta_holes.masks().subspan(std::size_t(beta_holes.offset(irrep)), std::size_t(beta_holes.count(irrep)));
  return beta_holes.offset(irrep) +
         (std::lower_bound(sector.begin(), sector.end(), alpha_hole) - sector.begin());
}

}  // namespace outcore::chem::ci
