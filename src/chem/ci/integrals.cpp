#include "chem/ci/integrals.hpp"

#include <algorithm>

namespace outcore::chem::ci {

double Integrals::operator()(Spins spins, int p, int q, int r, int s) const noexcept {
  double value = bare(spins, p, q, r, s);
  const int electrons = alpha_electrons + beta_electrons;
  if (electrons > 1) {
    if (r == s) value += one(spins == Spins::bb, p, q) / (electrons - 1);
    if (p == q) value += one(spins != Spins::aa, r, s) / (electrons - 1);
  }
  // S^2 - M (M + 1) = min(alpha, beta) - sum a+_q a_p b+_p b_q
  if (spin_shift != 0 && spins == Spins::ab) {
    if (p == q && r == s) value += spin_shift / std::max(alpha_electrons, beta_electrons);
    if (p == s && q == r) value -= spin_shift;
  }
  return value;
}

}  // namespace outcore::chem::ci
