// Products of the kernel against operators applied one by one, in small spaces, with a BLAS of loops.
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>

#include "chem/ci/kernel.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore::chem;
using namespace outcore::chem::ci;

namespace {

/// c = alpha op(a) op(b) + beta c, by columns, as Fortran has it.
template <class Real>
void gemm(const char* trans_a, const char* trans_b, const std::int64_t* m, const std::int64_t* n,
          const std::int64_t* k, const Real* alpha, const Real* a, const std::int64_t* lda, const Real* b,
          const std::int64_t* ldb, const Real* beta, Real* c, const std::int64_t* ldc, std::size_t,
          std::size_t) {
  for (std::int64_t j = 0; j < *n; ++j)
    for (std::int64_t i = 0; i < *m; ++i) {
      Real sum = 0;
      for (std::int64_t l = 0; l < *k; ++l)
        sum += (*trans_a == 'N' ? a[l * *lda + i] : a[i * *lda + l]) *
               (*trans_b == 'N' ? b[j * *ldb + l] : b[l * *ldb + j]);
      Real& to = c[j * *ldc + i];
      to = *alpha * sum + (*beta == 0 ? Real(0) : *beta * to);
    }
}

constexpr outcore::Blas blas{.dgemm = gemm<double>, .sgemm = gemm<float>};

struct Model {
  std::vector<int> irreps;
  int groups;
  std::vector<double> one, two;

  Model(std::vector<int> irreps_, int groups_) : irreps(std::move(irreps_)), groups(groups_) {
    const auto n = irreps.size();
    one.resize(n * n);
    two.resize(n * n * n * n);
    std::mt19937_64 random(n);
    std::uniform_real_distribution<double> within(-1, 1);
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = 0; q <= p; ++q) {
        if (irreps[p] == irreps[q]) one[p * n + q] = one[q * n + p] = within(random);
        for (std::size_t r = 0; r < n; ++r)
          for (std::size_t s = 0; s <= r; ++s) {
            if (irreps[p] ^ irreps[q] ^ irreps[r] ^ irreps[s]) continue;
            const double value = within(random);
            for (const auto& [a, b] : {std::pair{p, q}, std::pair{q, p}})
              for (const auto& [c, d] : {std::pair{r, s}, std::pair{s, r}})
                two[((a * n + b) * n + c) * n + d] = two[((c * n + d) * n + a) * n + b] = value;
          }
      }
  }
  [[nodiscard]] int n() const { return int(irreps.size()); }
  [[nodiscard]] Integrals integrals(int alpha, int beta) const {
    return {n(), alpha, beta, true, 0.0, one.data(), one.data(), {two.data(), two.data(), two.data()}};
  }
};

using Vector = std::map<std::pair<std::uint64_t, std::uint64_t>, double>;

/// a+_p a_q of one spin: the sign, or 0.
int move(std::uint64_t& mask, int p, int q) {
  if (!occupied(mask, q)) return 0;
  const int first = below(mask, q);
  mask &= ~(std::uint64_t{1} << q);
  if (occupied(mask, p)) return 0;
  const int second = below(mask, p);
  mask = with(mask, p);
  return (first + second) & 1 ? -1 : 1;
}

/// H = sum (h_pq - 1/2 sum_r (pr|rq)) E_pq + 1/2 sum (pq|rs) E_pq E_rs.
Vector product(const Model& model, const Vector& vector) {
  const auto n = std::size_t(model.n());
  const auto two = [&](int p, int q, int r, int s) {
    return model.two[((std::size_t(p) * n + std::size_t(q)) * n + std::size_t(r)) * n + std::size_t(s)];
  };
  const auto apply = [&](const Vector& to, int p, int q, const auto& each) {
    for (const auto& [strings, value] : to)
      for (int spin = 0; spin < 2; ++spin) {
        auto moved = strings;
        const int sign = move(spin ? moved.second : moved.first, p, q);
        if (sign) each(moved, sign * value);
      }
  };
  Vector result;
  for (int r = 0; r < model.n(); ++r)
    for (int s = 0; s < model.n(); ++s) {
      Vector excited;
      apply(vector, r, s, [&](const auto& strings, double value) { excited[strings] += value; });
      double h = model.one[std::size_t(r) * n + std::size_t(s)];
      for (int t = 0; t < model.n(); ++t) h -= two(r, t, t, s) / 2;
      for (const auto& [strings, value] : excited) result[strings] += h * value;
      for (int p = 0; p < model.n(); ++p)
        for (int q = 0; q < model.n(); ++q)
          apply(excited, p, q,
                [&](const auto& strings, double value) { result[strings] += two(p, q, r, s) / 2 * value; });
    }
  return result;
}

std::vector<std::int64_t> all_of(const Strings& strings) {
  std::vector<std::int64_t> indices(std::size_t(strings.count()));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = std::int64_t(i);
  return indices;
}

/// Calls each(I, J) for all determinants.
template <class Each>
void for_determinants(const Space& space, const Each& each) {
  for (std::int64_t i = 0; i < space.alpha.count(); ++i)
    for (std::int64_t j = 0; j < space.beta.count(); ++j)
      if ((space.alpha.irrep(i) ^ space.beta.irrep(j)) == space.target) each(i, j);
}

template <class Real>
void compare(const Model& model, int alpha, int beta, int target, int parity, int threads, double tolerance) {
  const auto space =
      std::make_shared<const Space>(Orbitals(model.irreps, model.groups), alpha, beta, target, parity != 0);
  const Kernel kernel(space, model.integrals(alpha, beta), blas);
  const auto rows = all_of(space->alpha), columns = all_of(space->beta);
  const bool single = sizeof(Real) == 4;
  Panel x(space, rows, {}, {}, single, false), t(space, rows, {}, {}, single, false);
  Panel x_turned(space, columns, {}, {}, single, true), t_turned(space, columns, {}, {}, single, true);
  t.clear(threads);
  t_turned.clear(threads);
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> within(-1, 1);
  Vector vector;
  for_determinants(*space, [&](std::int64_t i, std::int64_t j) {
    if (parity && j > i) return;
    const double value = parity < 0 && i == j ? 0 : double(float(within(random)));
    vector[{space->alpha.mask(i), space->beta.mask(j)}] = value;
    if (parity) vector[{space->alpha.mask(j), space->beta.mask(i)}] = parity * value;
  });
  const auto value_of = [&](const Vector& of, std::int64_t i, std::int64_t j) {
    const auto found = of.find({space->alpha.mask(i), space->beta.mask(j)});
    return found == of.end() ? 0.0 : found->second;
  };
  for_determinants(*space, [&](std::int64_t i, std::int64_t j) {
    const double value = value_of(vector, i, j);
    x.load(i, j, View<const double>{&value, 1, 1, 1, 1}, 1);
    x_turned.load(j, i, View<const double>{&value, 1, 1, 1, 1}, 1);
  });
  const auto holes = std::int64_t(space->alpha_holes.size());
  kernel.opposite_spin(x, t, 0, holes / 3, threads);
  kernel.opposite_spin(x, t, holes / 3, holes, threads);
  kernel.same_spin(x, t, threads);
  if (!parity) kernel.same_spin(x_turned, t_turned, threads);
  const Vector expected = product(model, vector);
  for_determinants(*space, [&](std::int64_t i, std::int64_t j) {
    double found = 0;
    t.unload(i, j, View<double>{&found, 1, 1, 1, 1}, 1);
    if (parity) t.unload(j, i, View<double>{&found, 1, 1, 1, 1}, parity);
    if (!parity) t_turned.unload(j, i, View<double>{&found, 1, 1, 1, 1}, 1);
    check::is_true(std::abs(found - value_of(expected, i, j)) < tolerance);
  });
}

}  // namespace

TEST("products without symmetry and with it, of all targets") {
  for (int threads : {1, 3}) {
    compare<double>(Model({0, 0, 0, 0, 0}, 1), 3, 2, 0, 0, threads, 1e-12);
    for (int target = 0; target < 4; ++target) {
      const Model model({0, 0, 1, 2, 3, 3}, 4);
      compare<double>(model, 2, 3, target, 0, threads, 1e-12);
      compare<float>(model, 2, 3, target, 0, threads, 1e-4);
    }
  }
}

TEST("folded products of both parities") {
  for (int threads : {1, 4})
    for (int parity : {1, -1})
      for (int target = 0; target < 2; ++target) {
        compare<double>(Model({0, 0, 0, 1, 1, 1}, 2), 3, 3, target, parity, threads, 1e-12);
        compare<double>(Model({0, 0, 0, 0, 0, 1}, 2), 2, 2, target, parity, threads, 1e-12);
        compare<float>(Model({0, 0, 0, 1, 1, 1}, 2), 3, 3, target, parity, threads, 1e-4);
      }
}

TEST("no electrons of a spin, one, and all that fit") {
  const Model model({0, 0, 1, 1}, 2);
  for (const auto& [alpha, beta] : {std::pair{0, 0}, {1, 0}, {0, 1}, {0, 2}, {3, 0}, {1, 1}, {4, 1}, {4, 4}})
    for (int target = 0; target < 2; ++target) compare<double>(model, alpha, beta, target, 0, 2, 1e-12);
}

TEST("the sum of the densities is the number of pairs") {
  const Model model({0, 0, 0, 1, 1}, 2);
  const auto space = std::make_shared<const Space>(Orbitals(model.irreps, 2), 3, 2, 1, false);
  const Kernel kernel(space, model.integrals(3, 2), blas);
  const auto rows = all_of(space->alpha), columns = all_of(space->beta);
  Panel x(space, rows, {}, {}, false, false), turned(space, columns, {}, {}, false, true);
  double norm = 0, value = 0;
  for_determinants(*space, [&](std::int64_t i, std::int64_t j) {
    value = std::sin(double(3 * i + 7 * j + 1));
    norm += value * value;
    x.load(i, j, View<const double>{&value, 1, 1, 1, 1}, 1);
    turned.load(j, i, View<const double>{&value, 1, 1, 1, 1}, 1);
  });
  const auto trace = [&](const std::vector<double>& sums) {
    double sum = 0;
    for (std::size_t p = 0; p < 5; ++p)
      for (std::size_t r = 0; r < 5; ++r) sum += sums[((p * 5 + p) * 5 + r) * 5 + r];
    return sum / norm;
  };
  std::vector<double> mixed(625), alpha(625), beta(625);
  kernel.opposite_spin_density(x, x, mixed.data(), 0, std::int64_t(space->alpha_holes.size()), 3);
  kernel.same_spin_density(x, x, beta.data(), 3);
  kernel.same_spin_density(turned, turned, alpha.data(), 3);
  check::is_true(std::abs(trace(mixed) - 3 * 2) < 1e-12);
  check::is_true(std::abs(trace(alpha) - 3 * 2) < 1e-12);
  check::is_true(std::abs(trace(beta) - 2 * 1) < 1e-12);
}

TEST("a panel for which there is no memory is empty, and may be assigned again") {
  const auto space = std::make_shared<const Space>(Orbitals(std::vector<int>(22, 0), 1), 11, 11, 0, false);
  const std::vector<std::int64_t> few{0, 1, 2}, all = all_of(space->alpha);
  Panel panel(space, few, {}, {}, false, false);
  try {
    panel.assign(all, {}, {});  // 4 TB
    return;                     // the system promises what it does not have
  } catch (const outcore::Error& error) {
    check::equal(error.errno_value(), ENOMEM);
  }
  check::equal(panel.nbytes(), 0);
  check::is_true(panel.rows().empty() && panel.home().empty());
  double value = 7;
  panel.unload(0, 0, View<double>{&value, 1, 1, 1, 1}, 1);
  check::equal(value, 7.0);
  panel.assign(few, {}, {});
  panel.load(2, 1, View<const double>{&value, 1, 1, 1, 1}, 1);
  panel.unload(2, 1, View<double>{&value, 1, 1, 1, 1}, 1);
  check::equal(value, 14.0);
}

TEST_MAIN
