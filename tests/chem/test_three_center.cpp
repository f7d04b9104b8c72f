#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <numeric>
#include <vector>

#include "chem/ri/three_center.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore::chem;

namespace {

void near(double actual, double expected, double tolerance) {
  check::is_true(std::abs(actual - expected) < tolerance);
}

// Three orbital shells (1, 3 and 1 functions) and two auxiliary ones (3 and 1): an integral is a number made
// of its functions.
const std::vector<int> first{0, 1, 4, 5, 8, 9};
constexpr int orbital_shells = 3, functions = 5, auxiliary = 4;

double value(int m, int n, int p) {
  return std::min(m, n) + 10 * std::max(m, n) + 100 * p + 1;
}

int int3c2e(double* out, int*, int* shells, int*, int, int*, int, double*, void*, double*) {
  if (!out) return 1;
  const auto range = [&](int position) {
    const auto shell = std::size_t(shells[position]);
    return std::pair(first[shell], first[shell + 1]);
  };
  for (int p = range(2).first; p < range(2).second; ++p)
    for (int n = range(1).first; n < range(1).second; ++n)
      for (int m = range(0).first; m < range(0).second; ++m) *out++ = value(m, n, p - functions);
  return 1;
}

/// (mn|mn) = (m + 1)(n + 1), and nothing beside the diagonal.
int int2e(double* out, int*, int* shells, int*, int, int*, int, double*, void*, double*) {
  if (!out) return 1;
  std::array<int, 4> size{};
  for (std::size_t k = 0; k < 4; ++k) {
    const auto shell = std::size_t(shells[k]);
    size[k] = first[shell + 1] - first[shell];
  }
  for (int s = 0; s < size[3]; ++s)
    for (int r = 0; r < size[2]; ++r)
      for (int q = 0; q < size[1]; ++q)
        for (int p = 0; p < size[0]; ++p)
          *out++ = p == r && q == s
                       ? (first[std::size_t(shells[0])] + p + 1.0) * (first[std::size_t(shells[1])] + q + 1)
                       : 0.0;
  return 1;
}

ThreeCenter::Functions model() {
  return {int3c2e, int2e, [](void**, int*, int, int*, int, double*) {}, [](void**) {}};
}

ThreeCenter three_center() {
  std::vector<int> bas;
  for (int l : {0, 1, 0, 1, 0}) bas.insert(bas.end(), {0, l, 1, 1, 0, 0, 0, 0});
  return ThreeCenter(std::vector<int>(6), bas, std::vector<double>(20), orbital_shells, true, model());
}

/// All pairs, in consecutive columns.
std::vector<PairColumns> all_pairs(const ThreeCenter& integrals) {
  std::vector<PairColumns> pairs;
  std::int32_t column = 0;
  for (int i = 0; i < orbital_shells; ++i)
    for (int j = 0; j <= i; ++j) {
      pairs.push_back({i, j, column});
      column += integrals.size(i) * integrals.size(j);
    }
  return pairs;
}

constexpr std::size_t columns = 1 + 3 + 9 + 1 + 3 + 1, stride = columns + 2;

}  // namespace

TEST("integrals become rows, and rows symmetric matrices") {
  const auto integrals = three_center();
  const auto pairs = all_pairs(integrals);
  for (int threads : {1, 3}) {
    std::vector<double> rows(auxiliary * stride, -1), matrices(auxiliary * functions * functions, -1);
    integrals.integrals(pairs, 0, 2, rows.data(), stride, threads);
    integrals.expand(pairs, rows.data(), stride, auxiliary, matrices.data(), threads);
    for (int p = 0; p < auxiliary; ++p)
      for (int m = 0; m < functions; ++m)
        for (int n = 0; n < functions; ++n)
          check::equal(matrices[std::size_t((p * functions + m) * functions + n)], value(m, n, p));
    check::equal(rows[columns], -1.0);  // columns of no pair are left alone
  }
}

TEST("images of a pair have its products, with signs, in either order of their shells") {
  const auto integrals = three_center();
  // The three functions of shell 1 go to functions of shell 1; shells 0 and 2 are exchanged.
  const std::vector<double> signs{1, 1, 1, 1, 1, 1, -1, 1, 1, -1}, characters{1, -1};
  const std::vector<double> row{1, 2, 3};  // of shells 1 and 0: (m 0), m = 1 to 3
  const std::vector<ImageColumns> images{{1, 0, 0, 0}, {1, 2, 0, 1}};
  std::vector<double> matrix(std::size_t(functions) * functions);
  const std::vector<std::int32_t> places{0, 1, 4};
  integrals.expand_images(images, row.data(), row.size(), 1, signs, characters, places, functions,
                          matrix.data(), 1);
  const auto element = [&](int m, int n) { return matrix[std::size_t(m * functions + n)]; };
  for (int m = 1; m < 4; ++m) {
    check::equal(element(m, 0), double(m));
    check::equal(element(0, m), double(m));
    // Characters and signs: -1 of the operation, -1 of function 4, -1 of function 1.
    check::equal(element(m, 4), m == 1 ? -1.0 : double(m));
    check::equal(element(4, m), element(m, 4));
  }
  check::equal(element(0, 4), 0.0);
  // Some shells only.
  std::vector<double> some(std::size_t(functions) * 4, 7.0);
  integrals.expand_images(images, row.data(), row.size(), 1, signs, characters, std::vector{0, 1, -1}, 4,
                          some.data(), 1);
  for (int m = 0; m < functions; ++m)
    for (int n = 0; n < 4; ++n)
      check::equal(some[std::size_t(m * 4 + n)], (m == 0 || m == 4) == (n == 0) ? 7.0 : element(m, n));
  const auto refused = [&](ImageColumns image, const std::vector<double>& of) {
    check::throws<outcore::Error>([&] {
      integrals.expand_images(std::vector{image}, row.data(), row.size(), 1, of, characters, places,
                              functions, matrix.data(), 1);
    });
  };
  refused({1, 3, 0, 0}, signs);
  refused({-1, 0, 0, 0}, signs);
  refused({1, 0, 0, 2}, signs);
  refused({1, 0, -1, 0}, signs);
  refused({1, 0, 0, 0}, {1, 1});
  check::throws<outcore::Error>([&] {
    integrals.expand_images(images, row.data(), row.size(), 1, signs, characters, places, 4, matrix.data(),
                            1);
  });
}

TEST("some pairs and some auxiliary shells") {
  const auto integrals = three_center();
  const std::vector<PairColumns> pairs{{2, 1, 4}};
  std::vector<double> row(8, -1);
  integrals.integrals(pairs, 1, 2, row.data(), 8, 2);
  for (int b = 0; b < 3; ++b) check::equal(row[std::size_t(4 + b)], value(4, 1 + b, 3));
  check::equal(row[3], -1.0);
  check::equal(row[7], -1.0);
}

TEST("bounds are of the largest product of two shells") {
  const auto bounds = three_center().bounds(2);
  check::equal(bounds.size(), std::size_t(6));
  near(bounds[0], 1.0, 1e-15);
  near(bounds[1], std::sqrt(4.0 * 1.0), 1e-15);  // shells 1 and 0
  near(bounds[2], 4.0, 1e-15);
  near(bounds[4], std::sqrt(5.0 * 4.0), 1e-15);  // 2 and 1
}

TEST("shells that are none, and missing entry points, are refused") {
  const auto integrals = three_center();
  std::vector<double> out(100);
  const auto compute = [&](PairColumns pair, int from, int to) {
    integrals.integrals(std::vector{pair}, from, to, out.data(), 20, 1);
  };
  check::throws<outcore::Error>([&] { compute({3, 0, 0}, 0, 1); });
  check::throws<outcore::Error>([&] { compute({0, 1, 0}, 0, 1); });
  check::throws<outcore::Error>([&] { compute({0, 0, -1}, 0, 1); });
  check::throws<outcore::Error>([&] { compute({0, 0, 0}, 0, 3); });
  check::throws<outcore::Error>([&] {
    ThreeCenter(std::vector<int>(6), std::vector<int>(16), std::vector<double>(20), 2, true, model());
  });
  auto functions_missing = model();
  functions_missing.int3c2e = nullptr;
  check::throws<outcore::Error>([&] {
    ThreeCenter(std::vector<int>(6), std::vector<int>(16), std::vector<double>(20), 1, true,
                functions_missing);
  });
}

TEST_MAIN
