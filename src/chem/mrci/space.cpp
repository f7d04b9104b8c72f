#include "chem/mrci/space.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <tuple>

namespace outcore::chem::mrci {

External exchanged(External kind) noexcept {
  constexpr std::array partner{External::none,       External::beta,      External::alpha,
                               External::alpha_beta, External::beta_beta, External::alpha_alpha};
  return partner[std::size_t(kind)];
}

std::array<int, 2> electrons_of(External kind) noexcept {
  constexpr std::array<std::array<int, 2>, external_kinds> counts{
      {{0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 0}, {0, 2}}};
  return counts[std::size_t(kind)];
}

Externals::Externals(std::vector<int> counts) : counts_(std::move(counts)), first_{0} {
  if (counts_.empty() || counts_.size() > 8 || !std::has_single_bit(counts_.size()))
    throw std::invalid_argument("there must be 1, 2, 4 or 8 irreps");
  for (int each : counts_) {
    if (each < 0) throw std::invalid_argument("a negative number of external orbitals");
    first_.push_back(first_.back() + each);
  }
  for (int g = 0; g < groups(); ++g) {
    std::int64_t mixed = 0, same = 0;
    for (int c = 0; c < groups(); ++c) {
      const std::int64_t m = count(c), n = count(c ^ g);
      mixed_.push_back(mixed);
      same_.push_back(same);
      mixed += m * n;
      if (g == 0)
        same += m * (m - 1) / 2;
      else if (c > (c ^ g))
        same += m * n;
    }
    mixed_size_.push_back(mixed);
    same_size_.push_back(same);
  }
}

std::int64_t Externals::size(External kind, int irrep) const noexcept {
  switch (kind) {
    case External::none:
      return irrep == 0 ? 1 : 0;
    case External::alpha:
    case External::beta:
      return count(irrep);
    case External::alpha_beta:
      return mixed_size_[std::size_t(irrep)];
    default:
      return same_size_[std::size_t(irrep)];
  }
}

Space::Space(Externals externals, std::vector<int> internal_irreps, std::array<int, 2> electrons, int target,
             int parity, std::span<const std::uint8_t> kinds, std::span<const std::uint64_t> alpha,
             std::span<const std::uint64_t> beta)
    : externals_(std::move(externals)),
      irreps_(std::move(internal_irreps)),
      electrons_(electrons),
      target_(target),
      parity_(parity) {
  if (irreps_.size() > max_internal) throw std::invalid_argument("more than 32 internal orbitals");
  for (int each : irreps_)
    if (each < 0 || each >= externals_.groups()) throw std::invalid_argument("an irrep that does not exist");
  if (target < 0 || target >= externals_.groups()) throw std::invalid_argument("target is no irrep");
  if (parity < -1 || parity > 1 || (parity != 0 && electrons[0] != electrons[1]))
    throw std::invalid_argument("parity must be 1, -1 or 0, and 0 for unequal numbers of electrons");
  if (kinds.size() != alpha.size() || alpha.size() != beta.size())
    throw std::invalid_argument("kinds and strings of different numbers");
  records_.reserve(kinds.size());
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] >= external_kinds) throw std::invalid_argument("a kind of record that does not exist");
    const auto kind = External(kinds[i]);
    const auto outside = electrons_of(kind);
    if (((alpha[i] | beta[i]) >> irreps_.size()) != 0 ||
        std::popcount(alpha[i]) + outside[0] != electrons[0] ||
        std::popcount(beta[i]) + outside[1] != electrons[1])
      throw std::invalid_argument("an internal determinant with the wrong number of electrons");
    const bool symmetric = kind == External::none || kind == External::alpha_beta;
    if (parity != 0 &&
        (symmetric ? alpha[i] < beta[i] : kind == External::beta || kind == External::beta_beta))
      throw std::invalid_argument("a record that folding leaves out");
    const int irrep = target ^ irrep_of(alpha[i]) ^ irrep_of(beta[i]);
    const std::int64_t size = externals_.size(kind, irrep);
    if (size == 0) throw std::invalid_argument("a record without elements");
    if (i > 0 &&
        std::tuple(kinds[i - 1], alpha[i - 1], beta[i - 1]) >= std::tuple(kinds[i], alpha[i], beta[i]))
      throw std::invalid_argument("records must be sorted by kind, alpha and beta, each once");
    records_.push_back(
        {alpha[i], beta[i], kind, irrep, offset, size, parity != 0 && symmetric && alpha[i] == beta[i]});
    ++first_[std::size_t(kinds[i]) + 1];
    offset += size;
  }
  for (std::size_t k = 0; k < external_kinds; ++k) first_[k + 1] += first_[k];
}

int Space::irrep_of(std::uint64_t internal) const noexcept {
  int irrep = 0;
  for (; internal != 0; internal &= internal - 1) irrep ^= irreps_[std::size_t(std::countr_zero(internal))];
  return irrep;
}

std::int64_t Space::size() const noexcept {
  return records_.empty() ? 0 : records_.back().offset + records_.back().size;
}

std::int64_t Space::find(External kind, std::uint64_t alpha, std::uint64_t beta) const noexcept {
  const auto begin = records_.begin() + first_[std::size_t(kind)];
  const auto end = records_.begin() + first_[std::size_t(kind) + 1];
  const auto at = std::lower_bound(
      begin, end, std::pair(alpha, beta),
      [](const Record& each, const auto& wanted) { return std::pair(each.alpha, each.beta) < wanted; });
  return at != end && at->alpha == alpha && at->beta == beta ? at - records_.begin() : -1;
}

Place Space::locate(External kind, std::uint64_t alpha, std::uint64_t beta) const noexcept {
  const bool symmetric = kind == External::none || kind == External::alpha_beta;
  const bool partner =
      parity_ != 0 && (symmetric ? alpha < beta : kind == External::beta || kind == External::beta_beta);
  if (!partner) return {find(kind, alpha, beta), false, 1};
  return {find(exchanged(kind), beta, alpha), kind == External::alpha_beta, double(parity_)};
}

void Space::fold(std::int64_t record, double scale, double* data) const noexcept {
  const Record& of = this->record(record);
  if (!of.own) return;
  if (of.kind == External::none) {
    data[0] *= scale * (1 + parity_);
    return;
  }
  for (int g = 0; g < externals_.groups(); ++g) {
    const int h = g ^ of.irrep;
    if (h < g) continue;
    const int m = externals_.count(g), n = externals_.count(h);
    double* const here = data + externals_.mixed(of.irrep, g);
    double* const there = data + externals_.mixed(of.irrep, h);
    for (int c = 0; c < m; ++c)
      for (int d = g == h ? c : 0; d < n; ++d) {
        double& a = here[std::int64_t(c) * n + d];
        double& b = there[std::int64_t(d) * m + c];
        const double sum = scale * (a + parity_ * b);
        a = sum;
        b = parity_ * sum;
      }
  }
}

}  // namespace outcore::chem::mrci
