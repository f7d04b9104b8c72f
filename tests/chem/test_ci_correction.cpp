// The pass of corrections over a tile, against its definition.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "chem/ci/correction.hpp"
#include "chem/ci/correction_kernels.hpp"
#include "support/check.hpp"

using namespace outcore;
using namespace outcore::chem::ci;

namespace {

using Vector = std::vector<double>;

std::vector<Vector> random_vectors(std::size_t count, std::size_t length, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> within(-1, 1);
  std::vector<Vector> made(count, Vector(length));
  for (auto& each : made)
    for (double& value : each) value = within(random);
  return made;
}

template <class T>
std::vector<std::vector<T>> as(const std::vector<Vector>& vectors) {
  std::vector<std::vector<T>> made;
  for (const auto& each : vectors) made.emplace_back(each.begin(), each.end());
  return made;
}

template <class T>
std::vector<T*> pointers(std::vector<std::vector<T>>& vectors) {
  std::vector<T*> made;
  for (auto& each : vectors) made.push_back(each.data());
  return made;
}

template <class A, class B>
double dot(const std::vector<A>& a, const std::vector<B>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double(a[i]) * double(b[i]);
  return sum;
}

void near(double found, double expected, double tolerance) {
  check::is_true(std::abs(found - expected) <= tolerance, "another number");
}

Vector mixed(const std::vector<Vector>& in, const double* factors) {
  Vector out(in[0].size());
  for (std::size_t j = 0; j < in.size(); ++j)
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += factors[j] * in[j][i];
  return out;
}

/// Two states, three vectors that collapse to one, corrections of the second state only, in memory that a
/// dropped vector has left.
template <class X, class W>
void check_pass(double tolerance) {
  const std::size_t length = 1500;
  const auto x = random_vectors(2, length, 1), hx = random_vectors(2, length, 2);
  const auto w = random_vectors(3, length, 3), hw = random_vectors(3, length, 4);
  const Vector diagonal = random_vectors(1, length, 5)[0];
  const auto to_states = random_vectors(1, 10, 6)[0], to_vectors = random_vectors(1, 3, 7)[0];
  const Vector energies{-0.4, 0.3};
  const double smallest = 0.05;

  auto xs = as<X>(x), hxs = as<X>(hx);
  auto ws = as<W>(w), hws = as<W>(hw);
  const std::vector<int> active{1};
  Vector sums(4 * (4 + 3) + 4);
  correct(CorrectionTile<X, W>{.elements = length,
                               .states = pointers(xs),
                               .h_states = pointers(hxs),
                               .vectors = pointers(ws),
                               .h_vectors = pointers(hws),
                               .corrections = {ws[2].data()},
                               .diagonal = diagonal.data(),
                               .to_states = to_states.data(),
                               .to_vectors = to_vectors.data(),
                               .collapses = true,
                               .kept = 1,
                               .energies = energies.data(),
                               .active = active,
                               .smallest = smallest,
                               .parity = 0},
          sums.data());

  auto all = x, h_all = hx;
  all.insert(all.end(), w.begin(), w.end());
  h_all.insert(h_all.end(), hw.begin(), hw.end());
  std::vector<Vector> basis, multiplied;
  for (std::size_t i = 0; i < 2; ++i) {
    basis.push_back(mixed(all, to_states.data() + 5 * i));
    multiplied.push_back(mixed(h_all, to_states.data() + 5 * i));
  }
  basis.push_back(mixed(w, to_vectors.data()));
  multiplied.push_back(mixed(hw, to_vectors.data()));
  Vector residual(length), correction(length);
  for (std::size_t i = 0; i < length; ++i) {
    residual[i] = multiplied[1][i] - energies[1] * basis[1][i];
    const double gap = energies[1] - diagonal[i];
    correction[i] = residual[i] / (std::abs(gap) >= smallest ? gap : std::copysign(smallest, gap));
  }
  basis.push_back(correction);
  for (std::size_t i = 0; i < length; ++i) {
    near(double(xs[1][i]), basis[1][i], tolerance);
    near(double(hxs[0][i]), multiplied[0][i], tolerance);
    near(double(ws[0][i]), basis[2][i], tolerance);
    near(double(hws[0][i]), multiplied[2][i], tolerance);
    near(double(ws[2][i]), correction[i], 40 * tolerance);
  }
  const double scale = double(length) * 100;
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 4; ++j) near(sums[7 * i + j], dot(basis[i], basis[j]), scale * tolerance);
    for (std::size_t j = 0; j < 3; ++j)
      near(sums[7 * i + 4 + j], dot(basis[i], multiplied[j]), scale * tolerance);
  }
  near(sums[28 + 2], dot(residual, residual), scale * tolerance);
  double above = 0;
  for (std::size_t i = 0; i < length; ++i) above += (diagonal[i] - energies[0]) * basis[0][i] * basis[0][i];
  near(sums[28 + 1], above, scale * tolerance);
}

}  // namespace

TEST("a pass gives states, directions, corrections and all products") {
  check_pass<double, double>(1e-13);
  check_pass<double, float>(1e-5);
  check_pass<float, float>(1e-5);
}

TEST("a tile on the diagonal has exactly the parity of the vector") {
  for (const int parity : {1, -1}) {
    const std::size_t side = 37, length = side * side;
    auto x = random_vectors(1, length, 1), hx = random_vectors(1, length, 2),
         t = random_vectors(1, length, 3);
    const Vector diagonal = random_vectors(1, length, 4)[0], one{1.0}, energies{-2.0};
    const std::vector<int> active{0};
    Vector sums(2 * 3 + 2);
    correct(CorrectionTile<double, double>{.elements = length,
                                           .states = pointers(x),
                                           .h_states = pointers(hx),
                                           .vectors = {},
                                           .h_vectors = {},
                                           .corrections = pointers(t),
                                           .diagonal = diagonal.data(),
                                           .to_states = one.data(),
                                           .to_vectors = nullptr,
                                           .collapses = false,
                                           .kept = 0,
                                           .energies = energies.data(),
                                           .active = active,
                                           .smallest = 0.01,
                                           .parity = parity},
            sums.data());
    for (const auto& each : {x[0], hx[0], t[0]})
      for (std::size_t r = 0; r < side; ++r)
        for (std::size_t c = 0; c <= r; ++c)
          check::is_true(each[r * side + c] == parity * each[c * side + r], "no parity");
    near(sums[0], dot(x[0], x[0]), 1e-10);
    near(sums[1], dot(x[0], t[0]), 1e-10);
    near(sums[2], dot(x[0], hx[0]), 1e-10);
  }
}

TEST("products of vectors of any precision") {
  const auto values = random_vectors(3, 1234, 9);
  const auto singles = as<float>(values);
  const std::vector<const double*> a{values[0].data(), values[1].data()};
  const std::vector<const float*> b{singles[2].data()};
  Vector sums(2, 1.0);
  add_dots<double, float>(a, b, 1234, sums.data());
  near(sums[0], 1 + dot(values[0], singles[2]), 1e-10);
  near(sums[1], 1 + dot(values[1], singles[2]), 1e-10);
}

TEST("all instruction sets give the same but for rounding") {
  const auto values = random_vectors(4, 777, 11);
  const auto run = [&](const CorrectionKernels& table) {
    Vector out = values[0], t(777), sums(2);
    std::vector<float> rounded(777);
    const auto single = as<float>({values[3]});
    table.add_double(out.data(), values[1].data(), 0.3, 777);
    table.add_float(out.data(), single[0].data(), -0.7, 777);
    table.store_float(rounded.data(), out.data(), 777);
    table.correct(t.data(), out.data(), values[1].data(), values[2].data(), -1.5, 0.01, 777, sums.data());
    out.insert(out.end(), t.begin(), t.end());
    out.push_back(table.dot(values[0].data(), values[1].data(), 777));
    out.insert(out.end(), sums.begin(), sums.end());
    return out;
  };
  const Vector expected = run(correction_kernels_any);
  for (const auto& variant : correction_kernels_variants) {
    if (!runs(variant.set)) continue;
    const Vector found = run(variant.table);
    for (std::size_t i = 0; i < found.size(); ++i) near(found[i], expected[i], 2e-6);
  }
}

TEST("rounding gives multiples of the step, whatever the instruction set and the length") {
  for (const std::size_t length : {1u, 15u, 16u, 61u, 700u})
    for (const double step : {0.25, 0x1p-30, 0x1p-70}) {
      const Vector before = random_vectors(1, length, 7)[0];
      Vector values = before, alone = before, added(length);
      const double squares = round_to(values.data(), added.data(), step, length);
      check::equal(round_to(alone.data(), nullptr, step, length), squares);
      check::is_true(alone == values);
      double expected = 0;
      for (std::size_t i = 0; i < length; ++i) {
        check::equal(values[i], std::nearbyint(before[i] / step) * step);
        check::equal(added[i], values[i] - before[i]);
        check::is_true(values[i] != 0 || !std::signbit(values[i]));
        expected += added[i] * added[i];
      }
      check::is_true(std::abs(squares - expected) <= 1e-14 * expected);
    }
}

TEST_MAIN
