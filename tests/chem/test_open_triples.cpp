// Triples of open shells against the formula of spin orbitals, which does not distinguish spins: a plain loop
// over all i, j, k, a, b, c.
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "chem/cc/open_triples.hpp"
#include "support/check.hpp"

using namespace outcore::chem::cc;

namespace {

/// dgemm of Fortran.
void gemm(const char*, const char*, const std::int64_t* m, const std::int64_t* n, const std::int64_t* k,
          const double* alpha, const double* a, const std::int64_t* lda, const double* b,
          const std::int64_t* ldb, const double* beta, double* c, const std::int64_t* ldc, std::size_t,
          std::size_t) {
  for (std::int64_t j = 0; j < *n; ++j)
    for (std::int64_t i = 0; i < *m; ++i) {
      double sum = 0;
      for (std::int64_t l = 0; l < *k; ++l) sum += a[l * *lda + i] * b[j * *ldb + l];
      double& to = c[j * *ldc + i];
      to = *alpha * sum + (*beta == 0 ? 0.0 : *beta * to);
    }
}

struct Orbital {
  int spin, number;
};

/// Occupied and virtual orbitals of both spins, with integrals, amplitudes and energies that follow a
/// formula.
struct Model {
  std::array<int, 2> o, v;

  /// (pq|rs) of two orbitals of spin s and two of spin r; virtual orbitals come after the occupied ones.
  [[nodiscard]] double integral(int s, int p, int q, int r, int x, int y) const {
    double sum = 0;
    for (int n = 0; n < 3; ++n) sum += factor(n, s, p, q) * factor(n, r, x, y);
    return sum;
  }
  [[nodiscard]] double energy(int s, int p) const {
    return (p < o[std::size_t(s)] ? -2.0 : 1.0) + 0.11 * p + 0.03 * s;
  }
  [[nodiscard]] double t1(int s, int i, int a) const { return 0.1 * std::sin(1.3 * i + 2.1 * a + s); }
  [[nodiscard]] double fock(int s, int i, int a) const { return 0.1 * std::cos(0.9 * i + 1.7 * a + s); }
  [[nodiscard]] double same(int s, int i, int j, int a, int b) const {
    return raw(s, i, j, a, b) - raw(s, j, i, a, b) - raw(s, i, j, b, a) + raw(s, j, i, b, a);
  }
  /// i, a of spin 0, j, b of spin 1.
  [[nodiscard]] double mixed(int i, int j, int a, int b) const { return raw(2, i, j, a, b); }
  /// i, a of spin s, j, b of the other one.
  [[nodiscard]] double t2(int s, int i, int j, int a, int b) const {
    return s ? mixed(j, i, b, a) : mixed(i, j, a, b);
  }

  // ---- spin orbitals; virtual ones are numbered from 0 ----

  [[nodiscard]] double t2(Orbital i, Orbital j, Orbital a, Orbital b) const {
    if (i.spin == j.spin)
      return a.spin == i.spin && b.spin == i.spin ? same(i.spin, i.number, j.number, a.number, b.number)
                                                  : 0.0;
    if (a.spin == i.spin && b.spin == j.spin) return t2(i.spin, i.number, j.number, a.number, b.number);
    if (a.spin == j.spin && b.spin == i.spin) return -t2(i.spin, i.number, j.number, b.number, a.number);
    return 0;
  }
  /// <pq||rs>, with one numbering for occupied and virtual orbitals.
  [[nodiscard]] double difference(Orbital p, Orbital q, Orbital r, Orbital s) const {
    return charge(p, r, q, s) - charge(p, s, q, r);
  }
  [[nodiscard]] Orbital above(Orbital a) const { return {a.spin, o[std::size_t(a.spin)] + a.number}; }

 private:
  [[nodiscard]] double charge(Orbital p, Orbital q, Orbital r, Orbital s) const {
    if (p.spin != q.spin || r.spin != s.spin) return 0;
    return integral(p.spin, p.number, q.number, r.spin, r.number, s.number);
  }
  static double factor(int n, int s, int p, int q) {
    if (p < q) std::swap(p, q);
    return std::sin(1 + 0.7 * p + 1.9 * q + 1.1 * n + 0.8 * s) / (1 + n);
  }
  static double raw(int s, int i, int j, int a, int b) {
    return 0.1 * std::sin(1 + 1.7 * i + 2.3 * j + 0.9 * a + 3.1 * b + 0.37 * i * a + 0.61 * j * b + s);
  }
};

std::vector<Orbital> orbitals(const std::array<int, 2>& counts) {
  std::vector<Orbital> all;
  for (int s = 0; s < 2; ++s)
    for (int n = 0; n < counts[std::size_t(s)]; ++n) all.push_back({s, n});
  return all;
}

/// (1/36) sum W (W + V) / D
double by_spin_orbitals(const Model& m) {
  const auto o = orbitals(m.o), v = orbitals(m.v);
  const auto n = o.size(), u = v.size();
  const auto at = [&](std::size_t i, std::size_t j, std::size_t k, std::size_t a, std::size_t b,
                      std::size_t c) { return ((((i * n + j) * n + k) * u + a) * u + b) * u + c; };
  std::vector<double> x(n * n * n * u * u * u), y(x.size());
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t k = 0; k < n; ++k)
        for (std::size_t a = 0; a < u; ++a)
          for (std::size_t b = 0; b < u; ++b)
            for (std::size_t c = 0; c < u; ++c) {
              const Orbital va = m.above(v[a]), vb = m.above(v[b]), vc = m.above(v[c]);
              double sum = 0;
              for (const Orbital d : v)
                sum += m.t2(o[j], o[k], v[a], d) * m.difference(vb, vc, m.above(d), o[i]);
              for (const Orbital l : o) sum -= m.t2(o[i], l, v[b], v[c]) * m.difference(l, va, o[j], o[k]);
              x[at(i, j, k, a, b, c)] = sum;
              if (o[i].spin == v[a].spin)
                y[at(i, j, k, a, b, c)] =
                    m.t1(o[i].spin, o[i].number, v[a].number) * m.difference(o[j], o[k], vb, vc) +
                    m.fock(o[i].spin, o[i].number, v[a].number) * m.t2(o[j], o[k], v[b], v[c]);
            }
  // The sign that each of the three gets when it is put first.
  constexpr int first[3][3] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}};
  double energy = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t k = 0; k < n; ++k)
        for (std::size_t a = 0; a < u; ++a)
          for (std::size_t b = 0; b < u; ++b)
            for (std::size_t c = 0; c < u; ++c) {
              const std::size_t occupied[3] = {i, j, k}, virtuals[3] = {a, b, c};
              double w = 0, disconnected = 0, gap = 0;
              for (const auto& p : first)
                for (const auto& q : first) {
                  const double sign = (p[0] ? -1.0 : 1.0) * (q[0] ? -1.0 : 1.0);
                  const std::size_t place = at(occupied[p[0]], occupied[p[1]], occupied[p[2]], virtuals[q[0]],
                                               virtuals[q[1]], virtuals[q[2]]);
                  w += sign * x[place];
                  disconnected += sign * y[place];
                }
              for (const std::size_t each : occupied) gap += m.energy(o[each].spin, o[each].number);
              for (const std::size_t each : virtuals) gap -= m.energy(v[each].spin, m.above(v[each]).number);
              energy += w * (w + disconnected) / gap / 36;
            }
  return energy;
}

/// What the kernel is given for spin s and the other spin r.
struct Inputs {
  const Model& m;
  int s, r, o, p, v, w;

  Inputs(const Model& model, int spin)
      : m(model),
        s(spin),
        r(1 - spin),
        o(m.o[std::size_t(s)]),
        p(m.o[std::size_t(r)]),
        v(m.v[std::size_t(s)]),
        w(m.v[std::size_t(r)]) {}

  /// The memory that the pointers point to.
  struct Values {
    std::vector<double> first, second, third, fourth;
  };

  [[nodiscard]] OpenSingle single(int x, Values& at) const {
    for (int d = 0; d < v; ++d)
      for (int i = 0; i < o; ++i)
        for (int j = 0; j < i; ++j) at.first.push_back(m.same(s, i, j, x, d));
    for (int l = 0; l < o; ++l)
      for (int i = 0; i < o; ++i)
        for (int j = 0; j < i; ++j)
          at.first.push_back(m.integral(s, l, i, s, j, o + x) - m.integral(s, l, j, s, i, o + x));
    for (int d = 0; d < w; ++d)
      for (int i = 0; i < o; ++i)
        for (int k = 0; k < p; ++k) at.second.push_back(m.t2(s, i, k, x, d));
    for (int l = 0; l < p; ++l)
      for (int i = 0; i < o; ++i)
        for (int k = 0; k < p; ++k) at.second.push_back(m.integral(r, l, k, s, i, o + x));
    for (int i = 0; i < o; ++i) {
      at.third.push_back(m.t1(s, i, x));
      at.fourth.push_back(m.fock(s, i, x));
    }
    return {at.first.data(), at.second.data(), at.third.data(), at.fourth.data(), m.energy(s, o + x)};
  }
  [[nodiscard]] OpenSingle other(int x, Values& at) const {
    for (int d = 0; d < v; ++d)
      for (int i = 0; i < o; ++i)
        for (int k = 0; k < p; ++k) at.second.push_back(m.t2(s, i, k, d, x));
    for (int l = 0; l < o; ++l)
      for (int i = 0; i < o; ++i)
        for (int k = 0; k < p; ++k) at.second.push_back(-m.integral(s, l, i, r, k, p + x));
    for (int k = 0; k < p; ++k) {
      at.third.push_back(m.t1(r, k, x));
      at.fourth.push_back(m.fock(r, k, x));
    }
    return {nullptr, at.second.data(), at.third.data(), at.fourth.data(), m.energy(r, p + x)};
  }
  [[nodiscard]] SameDouble same(int x, int y, Values& at) const {
    for (int i = 0; i < o; ++i) {
      for (int d = 0; d < v; ++d)
        at.first.push_back(m.integral(s, i, o + y, s, o + x, o + d) -
                           m.integral(s, i, o + x, s, o + y, o + d));
      for (int l = 0; l < o; ++l) at.first.push_back(-m.same(s, i, l, x, y));
    }
    for (int i = 0; i < o; ++i)
      for (int j = 0; j < i; ++j) {
        at.second.push_back(m.integral(s, i, o + x, s, j, o + y) - m.integral(s, i, o + y, s, j, o + x));
        at.third.push_back(m.same(s, i, j, x, y));
      }
    return {at.first.data(), at.second.data(), at.third.data()};
  }
  [[nodiscard]] MixedDouble mixed(int x, int z, Values& at) const {
    for (int k = 0; k < p; ++k) {
      for (int d = 0; d < v; ++d) at.first.push_back(m.integral(s, o + x, o + d, r, k, p + z));
      for (int l = 0; l < o; ++l) at.first.push_back(m.t2(s, l, k, x, z));
    }
    for (int i = 0; i < o; ++i) {
      for (int d = 0; d < w; ++d) at.second.push_back(m.integral(s, i, o + x, r, p + z, p + d));
      for (int l = 0; l < p; ++l) at.second.push_back(-m.t2(s, i, l, x, z));
    }
    for (int i = 0; i < o; ++i)
      for (int k = 0; k < p; ++k) {
        at.third.push_back(m.integral(s, i, o + x, r, k, p + z));
        at.fourth.push_back(m.t2(s, i, k, x, z));
      }
    return {at.first.data(), at.second.data(), at.third.data(), at.fourth.data()};
  }

  [[nodiscard]] std::vector<double> energies(int spin) const {
    std::vector<double> found;
    for (int i = 0; i < m.o[std::size_t(spin)]; ++i) found.push_back(m.energy(spin, i));
    return found;
  }

  [[nodiscard]] double of_one_spin() const {
    const auto occupied = energies(s);
    OpenTriplesWork work;
    double sum = 0;
    for (int a = 0; a < v; ++a)
      for (int b = 0; b < a; ++b)
        for (int c = 0; c < b; ++c) {
          Values at[6];
          sum += same_spin_triples({.dgemm = gemm}, {o, v, p, w}, occupied.data(), single(a, at[0]),
                                   single(b, at[1]), single(c, at[2]), same(a, b, at[3]), same(a, c, at[4]),
                                   same(b, c, at[5]), work);
        }
    return sum;
  }
  [[nodiscard]] double of_both_spins() const {
    const auto occupied = energies(s), others = energies(r);
    OpenTriplesWork work;
    double sum = 0;
    for (int a = 0; a < v; ++a)
      for (int b = 0; b < a; ++b)
        for (int c = 0; c < w; ++c) {
          Values at[6];
          sum += mixed_spin_triples({.dgemm = gemm}, {o, v, p, w}, occupied.data(), others.data(),
                                    single(a, at[0]), single(b, at[1]), other(c, at[2]), same(a, b, at[3]),
                                    mixed(a, c, at[4]), mixed(b, c, at[5]), work);
        }
    return sum;
  }
};

void compare(const Model& model) {
  const Inputs alpha(model, 0), beta(model, 1);
  const double found =
      alpha.of_one_spin() + beta.of_one_spin() + alpha.of_both_spins() + beta.of_both_spins();
  const double expected = by_spin_orbitals(model);
  check::is_true(std::abs(expected) > 1e-6);
  check::is_true(std::abs(found - expected) < 1e-12 * std::max(1.0, std::abs(expected)));
}

}  // namespace

TEST("triples of both spins are those of spin orbitals") {
  compare({{4, 3}, {3, 4}});
}

TEST("triples where one spin has two orbitals, and one") {
  compare({{3, 1}, {3, 2}});
  compare({{2, 1}, {2, 1}});
  compare({{1, 3}, {4, 2}});
}

TEST_MAIN
