#include <cmath>
#include <vector>

#include "chem/ri/three_center_gradient.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore::chem;

namespace {

// Two orbital shells (3 and 1 functions) and two auxiliary ones (1 and 3), each on an atom of its own except
// for the last, which is on the atom of the first orbital shell; a "derivative" is a number made of its
// component and functions.
const std::vector<int> first{0, 3, 4, 5, 8}, atoms{0, 1, 2, 0};
constexpr int orbital_shells = 2, functions = 4, auxiliary = 4;

double value(int x, int m, int n, int p) {
  return 100 * x + 10 * m + n + 0.1 * p;
}

int int3c2e_ip1(double* out, int*, int* shells, int*, int, int*, int, double*, void*, double*) {
  if (!out) return 1;
  const auto begin = [&](int position) { return first[std::size_t(shells[position])]; };
  const auto end = [&](int position) { return first[std::size_t(shells[position]) + 1]; };
  for (int x = 0; x < 3; ++x)
    for (int p = begin(2); p < end(2); ++p)
      for (int n = begin(1); n < end(1); ++n)
        for (int m = begin(0); m < end(0); ++m) *out++ = value(x, m, n, p - functions);
  return 1;
}

ThreeCenterGradient::Functions model() {
  return {int3c2e_ip1, [](void**, int*, int, int*, int, double*) {}, [](void**) {}};
}

ThreeCenterGradient gradient_of_model(const ThreeCenterGradient::Functions& entry_points) {
  std::vector<int> bas;
  for (std::size_t shell = 0; shell < atoms.size(); ++shell)
    bas.insert(bas.end(), {atoms[shell], (first[shell + 1] - first[shell]) / 2, 1, 1, 0, 0, 0, 0});
  return ThreeCenterGradient(std::vector<int>(3 * 6), bas, std::vector<double>(20), orbital_shells, true,
                             entry_points);
}

// Pairs (0, 0), (1, 0) and (1, 1): function a of i and b of j in column + b * size(i) + a.
const std::vector<PairColumns> pairs{{0, 0, 0}, {1, 0, 9}, {1, 1, 12}};
constexpr std::size_t columns = 13, stride = columns + 2;

double z(int m, int n, int p) {
  return 1.0 + std::min(m, n) + 2 * std::max(m, n) - 0.5 * p;
}

std::vector<double> rows() {
  std::vector<double> result(auxiliary * stride, 1e9);
  for (int p = 0; p < auxiliary; ++p) {
    double* row = &result[std::size_t(p) * stride];
    for (const auto& [i, j, column] : pairs) {
      double* target = row + column;
      for (int n = first[std::size_t(j)]; n < first[std::size_t(j) + 1]; ++n)
        for (int m = first[std::size_t(i)]; m < first[std::size_t(i) + 1]; ++m) *target++ = z(m, n, p);
    }
  }
  return result;
}

int atom_of(int function, bool of_auxiliary) {
  if (!of_auxiliary) return function < 3 ? 0 : 1;
  return function < 1 ? 2 : 0;
}

}  // namespace

TEST("each function moves with its atom, and what moves together does not count") {
  std::vector<double> expected(9, 0.0);
  for (int p = 0; p < auxiliary; ++p)
    for (int m = 0; m < functions; ++m)
      for (int n = 0; n < functions; ++n) {
        const int of_m = atom_of(m, false), of_n = atom_of(n, false), of_p = atom_of(p, true);
        if (of_m == of_p && of_n == of_p) continue;
        for (int x = 0; x < 3; ++x) {
          expected[std::size_t(of_m * 3 + x)] -= 2 * value(x, m, n, p) * z(m, n, p);
          expected[std::size_t(of_p * 3 + x)] += 2 * value(x, m, n, p) * z(m, n, p);
        }
      }
  const auto given = rows();
  for (int threads : {1, 3}) {
    std::vector<double> found(9, 0.0);
    const auto integrals = gradient_of_model(model());
    integrals.add(pairs, 0, 1, given.data(), stride, found.data(), threads);  // in two slabs
    integrals.add(pairs, 1, 2, given.data() + stride, stride, found.data(), threads);
    for (std::size_t x = 0; x < found.size(); ++x) check::is_true(std::abs(found[x] - expected[x]) < 1e-9);
  }
}

TEST("shells that are none, and missing entry points, are refused") {
  const auto integrals = gradient_of_model(model());
  std::vector<double> found(9), given(auxiliary * stride);
  const auto add = [&](PairColumns pair, int from, int to) {
    integrals.add(std::vector{pair}, from, to, given.data(), stride, found.data(), 1);
  };
  check::throws<outcore::Error>([&] { add({2, 0, 0}, 0, 1); });
  check::throws<outcore::Error>([&] { add({0, 1, 0}, 0, 1); });
  check::throws<outcore::Error>([&] { add({0, 0, 0}, 1, 3); });
  auto missing = model();
  missing.int3c2e_ip1 = nullptr;
  check::throws<outcore::Error>([&] { gradient_of_model(missing); });
}

TEST_MAIN
