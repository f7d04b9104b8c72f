// Which quartets of shells are kept, and which are recomputed when needed.
#pragma once

#include <cmath>
#include <vector>

#include "base/sibling.hpp"
#include "chem/common/basis.hpp"

namespace outcore::chem {

/// A quartet (ij|kl) with Schwarz bound Q is kept if recomputing it in the cycles to come is expected to cost
/// at least `min_score` seconds for each byte that it takes:
///
///   v(ij) v(kl) worth(Q) >= min_score
///
/// v: seconds to compute a value; one factor for each pair of kinds of shells, fitted to measured times.
/// worth: the number of cycles that need a quartet of this bound, divided by the bytes of one of its values.
/// The same numbers give the same decision at any process: no table of kept quartets is needed. Immutable,
/// shared by all threads.
class OUTCORE_SIBLING KeepRule {
 public:
  /// Everything is kept (true) or nothing (false).
  explicit KeepRule(bool everything) : min_score_(everything ? -HUGE_VAL : HUGE_VAL) {}

  /// `pair_factors`: one for each pair of kinds, see pair_of_kinds. `worth`: one value for each power of two
  /// of the bound, from 2^first_exponent on; beyond the ends the first and the last value apply.
  KeepRule(const Basis& basis, std::vector<double> pair_factors, std::vector<double> worth,
           int first_exponent, double min_score);

  [[nodiscard]] bool keeps_all() const noexcept { return min_score_ == -HUGE_VAL; }
  [[nodiscard]] bool keeps_none() const noexcept { return min_score_ == HUGE_VAL; }

  /// Seconds saved for each byte of a quartet with this bound.
  [[nodiscard]] double score(int i, int j, int k, int l, double bound) const noexcept {
    return factor(i, j) * factor(k, l) * worth_[exponent(bound)];
  }
  [[nodiscard]] bool keeps(int i, int j, int k, int l, double bound) const noexcept {
    return keeps_all() || (!keeps_none() && score(i, j, k, l, bound) >= min_score_);
  }

 private:
  [[nodiscard]] double factor(int i, int j) const noexcept {
    return factors_[pair_of_kinds(kinds_[std::size_t(i)], kinds_[std::size_t(j)])];
  }
  [[nodiscard]] std::size_t exponent(double bound) const noexcept {
    const int at = std::ilogb(bound) - first_exponent_;
    const int last = int(worth_.size()) - 1;
    return std::size_t(at < 0 ? 0 : at > last ? last : at);
  }

  double min_score_;
  std::vector<int> kinds_;
  std::vector<double> factors_, worth_;
  int first_exponent_ = 0;
};

}  // namespace outcore::chem
