#include "chem/ci/pair_matrix.hpp"

namespace outcore::chem::ci {

PairLayout::PairLayout(const Orbitals& orbitals, int irrep) {
  const int groups = orbitals.groups();
  std::vector<int> order;  // irreps of s: the lower ones of all pairs of irreps, then the others
  for (int i = 0; i < groups; ++i)
    if (i <= (i ^ irrep)) order.push_back(i);
  for (int i = 0; i < groups; ++i)
    if (i > (i ^ irrep)) order.push_back(i);
  for (int i : order) {
    const int j = i ^ irrep;
    base[std::size_t(i)] = size();
    for (int a = 0; a < orbitals.count(i); ++a)
      for (int b = 0; b < orbitals.count(j); ++b) {
        s.push_back(orbitals.first(i) + a);
        q.push_back(orbitals.first(j) + b);
      }
  }
  const auto place = [&](int i, int a, int b) {
    return std::int32_t(base[std::size_t(i)] + a * orbitals.count(i ^ irrep) + b);
  };
  for (int i : order) {
    const int j = i ^ irrep;
    if (i > j) break;
    for (int a = 0; a < orbitals.count(i); ++a)
      for (int b = 0; b < (i == j ? a : orbitals.count(j)); ++b) {
        left.push_back(place(i, a, b));
        right.push_back(place(j, b, a));
      }
  }
  minus = int(left.size());
  if (irrep == 0)
    for (int i : order)
      for (int a = 0; a < orbitals.count(i); ++a) {
        left.push_back(place(i, a, a));
        right.push_back(place(i, a, a));
      }
}

template <class Real>
PairMatrix<Real> pair_matrix(const PairLayout& layout, const Integrals& v) {
  PairMatrix<Real> result;
  const auto size = std::size_t(layout.size());
  std::vector<double> full(size * size);
  for (std::size_t t = 0; t < size; ++t)
    for (std::size_t u = 0; u < size; ++u)
      full[t * size + u] = v(Spins::ab, layout.q[t], layout.q[u], layout.s[t], layout.s[u]);
  result.full.assign(full.begin(), full.end());
  if (!v.same_orbitals) return result;
  const auto plus = std::size_t(layout.plus()), minus = std::size_t(layout.minus);
  result.plus.resize(plus * plus);
  result.minus.resize(minus * minus);
  for (std::size_t t = 0; t < plus; ++t)
    for (std::size_t u = 0; u < plus; ++u) {
      const double* row = &full[std::size_t(layout.left[t]) * size];
      const double direct = row[layout.left[u]], exchanged = row[layout.right[u]];
      // D+ of a pair s == q is twice D.
      result.plus[t * plus + u] = Real(0.5 * (direct + exchanged) * (u < minus ? 1.0 : 0.5));
      if (u < minus && t < minus) result.minus[t * minus + u] = Real(0.5 * (direct - exchanged));
    }
  return result;
}

template PairMatrix<double> pair_matrix(const PairLayout&, const Integrals&);
template PairMatrix<float> pair_matrix(const PairLayout&, const Integrals&);

SamePairs::SamePairs(const Orbitals& orbitals, int irrep, const Integrals& v, bool beta) {
  const bool single = v.alpha_electrons + v.beta_electrons == 1;
  for (int p = 0; p < orbitals.count(); ++p)
    for (int r = single ? p : 0; r < (single ? p + 1 : p); ++r)
      if ((orbitals.irrep(p) ^ (single ? 0 : orbitals.irrep(r))) == irrep) {
        q.push_back(p);
        s.push_back(r);
      }
  const auto spins = beta ? Spins::bb : Spins::aa;
  const auto count = std::size_t(size());
  matrix.resize(count * count);
  for (std::size_t t = 0; t < count; ++t)
    for (std::size_t u = 0; u < count; ++u)
      matrix[t * count + u] = single ? v.one(beta, q[t], q[u])
                                     : v(spins, q[t], q[u], s[t], s[u]) - v(spins, q[t], s[u], s[t], q[u]);
}

}  // namespace outcore::chem::ci
