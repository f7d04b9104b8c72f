#include "chem/mrci/pairs.hpp"

#include <algorithm>
#include <utility>

namespace outcore::chem::mrci {
namespace {

std::size_t pair_of(int p, int q) noexcept {
  if (p < q) std::swap(p, q);
  return std::size_t(p) * (std::size_t(p) + 1) / 2 + std::size_t(q);
}

struct Pair {
  int q, s;
};

/// External pairs c, d of an irrep in the order of records of `alpha_beta`.
std::vector<Pair> external_pairs(const Space& space, int irrep) {
  const Externals& externals = space.externals();
  std::vector<Pair> found;
  for (int g = 0; g < externals.groups(); ++g)
    for (int c = 0; c < externals.count(g); ++c)
      for (int d = 0; d < externals.count(g ^ irrep); ++d)
        found.push_back(
            {space.internals() + externals.first(g) + c, space.internals() + externals.first(g ^ irrep) + d});
  return found;
}

/// Adds the internal pairs of an irrep, q with all s below `last_of(q)`. Returns their numbers [q][s]; -1:
/// another irrep.
template <class LastOf>
std::vector<int> add_internal(const Space& space, int irrep, const LastOf& last_of,
                              std::vector<Pair>& pairs) {
  const int u = space.internals();
  std::vector<int> numbers(std::size_t(u * u), -1);
  for (int q = 0; q < u; ++q)
    for (int s = 0; s < last_of(q); ++s)
      if ((space.irrep(q) ^ space.irrep(s)) == irrep) {
        numbers[std::size_t(q * u + s)] = int(pairs.size());
        pairs.push_back({q, s});
      }
  return numbers;
}

/// Adds the pairs of each internal orbital with external ones, which come first in a pair. Returns the number
/// of the first pair of each internal orbital.
std::vector<int> add_mixed(const Space& space, int irrep, std::vector<Pair>& pairs) {
  const Externals& externals = space.externals();
  std::vector<int> numbers;
  for (int s = 0; s < space.internals(); ++s) {
    const int g = irrep ^ space.irrep(s);
    numbers.push_back(int(pairs.size()));
    for (int c = 0; c < externals.count(g); ++c)
      pairs.push_back({space.internals() + externals.first(g) + c, s});
  }
  return numbers;
}

}  // namespace

double Integrals::bare(int p, int q, int r, int s) const noexcept {
  if (std::min(p, q) >= internals) {
    std::swap(p, r);
    std::swap(q, s);
  }
  if (p < q) std::swap(p, q);
  const std::size_t row =
      p < internals
          ? pair_of(p, q)
          : pair_of(internals, 0) + std::size_t(p - internals) * std::size_t(internals) + std::size_t(q);
  return rows[row * pair_of(orbitals, 0) + pair_of(r, s)];
}

double Integrals::between(double bare, int p, int q, int r, int s) const noexcept {
  double sum = bare;
  const double others = alpha_electrons + beta_electrons - 1;
  if (r == s) sum += one[std::size_t(p) * std::size_t(orbitals) + std::size_t(q)] / others;
  if (p == q) sum += one[std::size_t(r) * std::size_t(orbitals) + std::size_t(s)] / others;
  if (p == q && r == s) sum += 2 * constant / (others * (others + 1));
  return sum;
}

double Integrals::opposite(double bare, int p, int q, int r, int s) const noexcept {
  double sum = between(bare, p, q, r, s);
  if (spin_shift == 0) return sum;
  // S^2 - M (M + 1) = the lower number of electrons - sum_pq a+_p a_q b+_q b_p
  if (p == s && q == r) sum -= spin_shift;
  if (p == q && r == s) sum += spin_shift / std::max(alpha_electrons, beta_electrons);
  return sum;
}

OppositePairs::OppositePairs(const Space& space, int of_irrep, const Integrals& v)
    : irrep(of_irrep), u(space.internals()) {
  std::vector<Pair> pairs;
  internal_ = add_internal(space, of_irrep, [&](int) { return u; }, pairs);
  first_ = add_mixed(space, of_irrep, pairs);
  const auto mirrored = std::ptrdiff_t(pairs.size());
  second_ = add_mixed(space, of_irrep, pairs);
  for (auto each = pairs.begin() + mirrored; each != pairs.end(); ++each) std::swap(each->q, each->s);
  mixed = int(pairs.size());
  const std::vector<Pair> outer = external_pairs(space, of_irrep);
  external = int(outer.size());
  for (const std::vector<Pair>* each : {&std::as_const(pairs), &outer})
    for (const Pair& pair : *each) {
      firsts.push_back(pair.q);
      seconds.push_back(pair.s);
    }
  matrix.reserve(pairs.size() * pairs.size());
  to_external.reserve(pairs.size() * outer.size());
  for (const Pair& from : pairs) {
    for (const Pair& to : pairs) matrix.push_back(v.opposite(to.q, from.q, to.s, from.s));
    for (const Pair& to : outer) to_external.push_back(v.opposite(to.q, from.q, to.s, from.s));
  }
}

EqualPairs::EqualPairs(const Space& space, int of_irrep, const Integrals& v)
    : irrep(of_irrep), u(space.internals()) {
  std::vector<Pair> pairs;
  internal_ = add_internal(space, of_irrep, [](int q) { return q; }, pairs);
  first_ = add_mixed(space, of_irrep, pairs);
  mixed = int(pairs.size());
  std::vector<Pair> outer = external_pairs(space, of_irrep);
  std::erase_if(outer, [](const Pair& each) { return each.q <= each.s; });
  external = int(outer.size());
  const auto integral = [&](const Pair& from, const Pair& to) {
    return v.between(to.q, from.q, to.s, from.s) - v.between(to.q, from.s, to.s, from.q);
  };
  matrix.reserve(pairs.size() * pairs.size());
  to_external.reserve(pairs.size() * outer.size());
  for (const Pair& from : pairs) {
    for (const Pair& to : pairs) matrix.push_back(integral(from, to));
    for (const Pair& to : outer) to_external.push_back(integral(from, to));
  }
}

}  // namespace outcore::chem::mrci
