#include <cmath>
#include <vector>

#include "chem/ri/pair_energy.hpp"
#include "support/check.hpp"

using namespace outcore::chem;

namespace {

void near(double actual, double expected, double tolerance) {
  check::is_true(std::abs(actual - expected) < tolerance);
}

struct Block {
  std::size_t rows, columns, stride;
  std::vector<double> v, a, b;
  double gap = -1.5;

  Block(std::size_t rows_, std::size_t columns_) : rows(rows_), columns(columns_), stride(columns_ + 3) {
    for (std::size_t n = 0; n < rows * stride; ++n) v.push_back(std::sin(double(n) + 1));
    for (std::size_t n = 0; n < rows; ++n) a.push_back(0.1 + 0.01 * double(n));
    for (std::size_t n = 0; n < columns; ++n) b.push_back(0.1 + 0.01 * double(n));
  }
  [[nodiscard]] double at(std::size_t r, std::size_t c) const { return v[r * stride + c]; }
  [[nodiscard]] PairSums sums(bool square) const {
    return pair_sums(v.data(), stride, gap, a.data(), rows, b.data(), columns, square);
  }
  [[nodiscard]] PairSums expected(bool square) const {
    PairSums result{0, 0};
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) {
        result.direct += at(r, c) * at(r, c) / (gap - a[r] - b[c]);
        if (square) result.exchange += at(r, c) * at(c, r) / (gap - a[r] - b[c]);
      }
    return result;
  }
};

}  // namespace

TEST("sums of square blocks of sizes around those of tiles") {
  for (std::size_t size : {1, 2, 31, 32, 33, 64, 77}) {
    const Block block(size, size);
    near(block.sums(true).direct, block.expected(true).direct, 1e-12 * double(size * size));
    near(block.sums(true).exchange, block.expected(true).exchange, 1e-12 * double(size * size));
  }
}

TEST("a block of different orbitals has no exchange") {
  const Block block(7, 40);
  near(block.sums(false).direct, block.expected(false).direct, 1e-12);
  check::equal(block.sums(false).exchange, 0.0);
}

TEST_MAIN
