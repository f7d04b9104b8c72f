// Triples of closed shells against a plain loop over i, j, k.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "chem/cc/triples_kernels.hpp"
#include "support/check.hpp"

using namespace outcore::chem::cc;

namespace {

/// Occupied orbitals 0 to o - 1 and virtual ones from o on, whose integrals and amplitudes follow a formula.
struct Model {
  std::size_t o, v;

  [[nodiscard]] double integral(std::size_t p, std::size_t q, std::size_t r, std::size_t s) const {
    return std::cos(0.7 * double(p + q) + 0.3 * double(p * q)) *
               std::cos(0.7 * double(r + s) + 0.3 * double(r * s)) +
           0.1 / (1.0 + double(p + q + r + s));
  }
  [[nodiscard]] double t2(std::size_t i, std::size_t j, std::size_t a, std::size_t b) const {
    return std::sin(1.1 * double(i) + 0.7 * double(a)) * std::sin(1.1 * double(j) + 0.7 * double(b)) +
           0.1 * std::cos(double(i * a + j * b));
  }
  [[nodiscard]] double t1(std::size_t i, std::size_t a) const {
    return 0.1 * std::sin(1.3 * double(i) + 2.1 * double(a));
  }
  [[nodiscard]] double fock(std::size_t i, std::size_t a) const {
    return 0.1 * std::cos(0.9 * double(i) + 1.7 * double(a));
  }
  [[nodiscard]] double energy(std::size_t p) const { return (p < o ? -2.0 : 1.0) + 0.11 * double(p); }

  /// One of the six terms of connected amplitudes.
  [[nodiscard]] double term(std::size_t i, std::size_t x, std::size_t j, std::size_t y, std::size_t k,
                            std::size_t z) const {
    double sum = 0;
    for (std::size_t d = 0; d < v; ++d) sum += integral(i, o + x, o + y, o + d) * t2(j, k, d, z);
    for (std::size_t l = 0; l < o; ++l) sum -= integral(i, o + x, j, l) * t2(k, l, z, y);
    return sum;
  }
  [[nodiscard]] double w(std::size_t i, std::size_t j, std::size_t k, std::size_t a, std::size_t b,
                         std::size_t c) const {
    return term(i, a, j, b, k, c) + term(i, a, k, c, j, b) + term(j, b, i, a, k, c) + term(j, b, k, c, i, a) +
           term(k, c, i, a, j, b) + term(k, c, j, b, i, a);
  }
  [[nodiscard]] double disconnected(std::size_t i, std::size_t j, std::size_t k, std::size_t a, std::size_t b,
                                    std::size_t c) const {
    return integral(i, o + a, j, o + b) * t1(k, c) + t2(i, j, a, b) * fock(k, c) +
           integral(i, o + a, k, o + c) * t1(j, b) + t2(i, k, a, c) * fock(j, b) +
           integral(j, o + b, k, o + c) * t1(i, a) + t2(j, k, b, c) * fock(i, a);
  }
  [[nodiscard]] double plain(std::size_t a, std::size_t b, std::size_t c) const {
    std::vector<double> all(o * o * o);
    const auto at = [&](std::size_t i, std::size_t j, std::size_t k) -> double& {
      return all[(i * o + j) * o + k];
    };
    for (std::size_t i = 0; i < o; ++i)
      for (std::size_t j = 0; j < o; ++j)
        for (std::size_t k = 0; k < o; ++k) at(i, j, k) = w(i, j, k, a, b, c);
    double sum = 0;
    for (std::size_t i = 0; i < o; ++i)
      for (std::size_t j = 0; j < o; ++j)
        for (std::size_t k = 0; k < o; ++k)
          sum +=
              (at(i, j, k) + disconnected(i, j, k, a, b, c)) *
              (4 * at(i, j, k) + at(j, k, i) + at(k, i, j) - 2 * (at(i, k, j) + at(j, i, k) + at(k, j, i))) /
              (energy(i) + energy(j) + energy(k) - energy(o + a) - energy(o + b) - energy(o + c));
    return 2 * sum;
  }
};

/// Elements of an array whose last index has room for `padded`; the elements beyond the occupied orbitals
/// must have no effect.
class Rows {
 public:
  Rows(std::size_t occupied, std::size_t padded) : occupied_(occupied), padded_(padded) {}

  template <class Element>
  [[nodiscard]] std::vector<double> operator()(std::size_t rows, const Element& element) const {
    std::vector<double> all(rows * padded_, 1e3);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t k = 0; k < occupied_; ++k) all[row * padded_ + k] = element(row, k);
    return all;
  }

 private:
  std::size_t occupied_, padded_;
};

/// The input for a virtual orbital x.
struct OfOne {
  std::vector<double> amplitudes, turned, integrals, turned_integrals, t1, fock;
  double energy;

  OfOne(const Model& m, const Rows& rows, std::size_t x) : energy(m.energy(m.o + x)) {
    const auto o = m.o, v = m.v;
    amplitudes = rows(o * v, [&](auto row, auto k) { return m.t2(row / v, k, row % v, x); });
    turned = rows(o * v, [&](auto row, auto j) { return m.t2(j, row / v, row % v, x); });
    integrals = rows(o * o, [&](auto row, auto k) { return -m.integral(row / o, o + x, row % o, k); });
    turned_integrals = rows(o * o, [&](auto row, auto i) { return -m.integral(i, o + x, row / o, row % o); });
    for (std::size_t i = 0; i < o; ++i) {
      t1.push_back(m.t1(i, x));
      fock.push_back(m.fock(i, x));
    }
  }
  [[nodiscard]] Single all() const {
    return {amplitudes.data(), turned.data(), integrals.data(), turned_integrals.data(), t1.data(),
            fock.data(),       energy};
  }
};

/// The input for virtual orbitals x and y.
struct OfTwo {
  std::vector<double> integrals, turned, amplitudes, turned_amplitudes, exchange;

  OfTwo(const Model& m, const Rows& rows, std::size_t x, std::size_t y) {
    const auto o = m.o, v = m.v;
    integrals = rows(v, [&](auto d, auto i) { return m.integral(i, o + x, o + y, o + d); });
    turned = rows(v, [&](auto d, auto i) { return m.integral(i, o + y, o + x, o + d); });
    amplitudes = rows(o, [&](auto i, auto j) { return m.t2(i, j, x, y); });
    turned_amplitudes = rows(o, [&](auto j, auto i) { return m.t2(i, j, x, y); });
    exchange = rows(o, [&](auto i, auto j) { return m.integral(i, o + x, j, o + y); });
  }
  [[nodiscard]] Double all() const {
    return {integrals.data(), turned.data(), amplitudes.data(), turned_amplitudes.data(), exchange.data()};
  }
};

ThreeVirtuals three(const std::array<OfOne, 3>& one, const std::array<OfTwo, 3>& two) {
  return {one[0].all(), one[1].all(), one[2].all(), two[0].all(), two[1].all(), two[2].all()};
}

}  // namespace

TEST("energies are those of a plain loop, for each instruction set that runs here") {
  // One and several rows and columns of tiles, narrow tiles at the end, and sums in one and in several parts.
  for (const auto& [o, v, padded] : {std::array<std::size_t, 3>{1, 4, 4},
                                     {2, 4, 4},
                                     {4, 4, 8},
                                     {7, 5, 8},
                                     {9, 4, 12},
                                     {13, 30, 16},
                                     {3, 300, 4},
                                     {14, 4, 20},
                                     {18, 4, 24}}) {
    const Model m{o, v};
    const Rows rows(o, padded);
    const TriplesSizes sizes{o, padded, v};
    std::vector<double> energies(o);
    for (std::size_t i = 0; i < o; ++i) energies[i] = m.energy(i);
    TriplesWork work;
    for (const auto& [a, b, c] : {std::array<std::size_t, 3>{3, 2, 0}, {3, 1, 1}, {2, 2, 1}}) {
      const std::array one{OfOne(m, rows, a), OfOne(m, rows, b), OfOne(m, rows, c)};
      const std::array two{OfTwo(m, rows, a, b), OfTwo(m, rows, a, c), OfTwo(m, rows, b, c)};
      const ThreeVirtuals of = three(one, two);
      const double expected = m.plain(a, b, c);
      const auto is_expected = [&](double found) {
        check::is_true(std::abs(found - expected) < 1e-11 * std::max(1.0, std::abs(expected)));
      };
      is_expected(triples_energy(sizes, energies.data(), of, work));
      for (const auto& variant : triples_kernels_variants) {
        if (!outcore::runs(variant.set)) continue;
        const double above = of.a.energy + of.b.energy + of.c.energy;
        variant.table.connected(sizes, of, work.w.data());
        variant.table.disconnected(sizes, of, work.v.data());
        is_expected(variant.table.energy(sizes, energies.data(), above, work.w.data(), work.v.data()));
      }
    }
  }
}

TEST("derivatives are differences of energies, and densities those of a plain loop") {
  for (const auto& [o, v, padded] : {std::array<std::size_t, 3>{1, 4, 4}, {5, 4, 8}, {7, 5, 12}}) {
    const Model m{o, v};
    const Rows rows(o, padded);
    const TriplesSizes sizes{o, padded, v};
    std::vector<double> energies(o);
    for (std::size_t i = 0; i < o; ++i) energies[i] = m.energy(i);
    std::array one{OfOne(m, rows, 3), OfOne(m, rows, 2), OfOne(m, rows, 0)};
    std::array two{OfTwo(m, rows, 3, 2), OfTwo(m, rows, 3, 0), OfTwo(m, rows, 2, 0)};
    TriplesWork work;
    const auto is_near = [](double found, double expected, double error) {
      check::is_true(std::abs(found - expected) < error);
    };
    std::vector<double> oo(o * padded), all(6 * o), density(3), pairs(3 * o * padded);
    const auto single = [&](std::size_t n) {
      return SingleSums{&all[2 * n * o], &all[(2 * n + 1) * o], &density[n]};
    };
    const auto pair = [&](std::size_t n) { return &pairs[n * o * padded]; };
    const TriplesSums sums{oo.data(), single(0), single(1), single(2), pair(0), pair(1), pair(2)};
    const auto energy = [&] {
      TriplesWork other;
      return triples_energy(sizes, energies.data(), three(one, two), other);
    };
    const double weight = 0.5, whole = energy();
    is_near(triples_derivatives(sizes, energies.data(), three(one, two), weight, work, sums), whole,
            1e-10 * std::max(1.0, std::abs(whole)));
    const auto is_derivative = [&](double& element, double found) {
      const double before = element, h = 1e-3;
      element = before + h;
      const double above = energy();
      element = before - h;
      const double below = energy();
      element = before;
      is_near(found, weight * (above - below) / (2 * h), 1e-7 * std::max(1.0, std::abs(found)));
    };
    for (std::size_t n = 0; n < 3; ++n) {
      is_derivative(one[n].t1[o - 1], sums.a.t1[2 * n * o + o - 1]);
      is_derivative(one[n].fock[0], sums.a.fock[2 * n * o]);
      is_derivative(two[n].exchange[(o - 1) * padded], pairs[n * o * padded + (o - 1) * padded]);
    }
    // If all gaps change alike, the derivative is a sum of densities.
    double trace = 0;
    for (std::size_t i = 0; i < o; ++i) trace += oo[i * padded + i];
    is_near(trace, density[0] + density[1] + density[2], 1e-9 * std::max(1.0, std::abs(trace)));
    for (std::size_t i = 0; i < o; ++i) {
      const double before = energies[i], h = 1e-4;
      energies[i] = before + h;
      const double above = energy();
      energies[i] = before - h;
      const double below = energy();
      energies[i] = before;
      is_near(-oo[i * padded + i], weight * (above - below) / (2 * h), 1e-5 * std::max(1.0, std::abs(whole)));
    }
  }
}

TEST_MAIN
