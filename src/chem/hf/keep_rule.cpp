#include "chem/hf/keep_rule.hpp"

#include <cerrno>

#include "outcore/error.hpp"

namespace outcore::chem {

KeepRule::KeepRule(const Basis& basis, std::vector<double> pair_factors, std::vector<double> worth,
                   int first_exponent, double min_score)
    : min_score_(min_score),
      factors_(std::move(pair_factors)),
      worth_(std::move(worth)),
      first_exponent_(first_exponent) {
  const auto kinds = std::size_t(basis.kinds());
  if (factors_.size() != kinds * (kinds + 1) / 2 || worth_.empty())
    throw Error(EINVAL, {.attempted = "choose the integrals to keep",
                         .detail = std::to_string(factors_.size()) + " factors for pairs of " +
                                   std::to_string(kinds) + " kinds of shells, and the worth of " +
                                   std::to_string(worth_.size()) + " magnitudes"});
  for (int shell = 0; shell < basis.shells(); ++shell) kinds_.push_back(basis.kind(shell));
}

}  // namespace outcore::chem
