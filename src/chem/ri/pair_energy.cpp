#include "chem/ri/pair_energy.hpp"

#include <algorithm>

namespace outcore::chem {
namespace {

constexpr std::size_t tile = 32;  // rows and columns that, with their mirror image, stay in the L1 cache

/// One tile [a0, a1) x [b0, b1) of different a and b, together with its mirror image.
PairSums mirrored(const double* v, std::size_t stride, double gap, const double* e, std::size_t a0,
                  std::size_t a1, std::size_t b0, std::size_t b1) noexcept {
  PairSums sums{0, 0};
  double turned[tile];
  for (std::size_t a = a0; a < a1; ++a) {
    const double* row = v + a * stride;
    const double left = gap - e[a];
    const std::size_t end = std::min(b1, a0 == b0 ? a : b1);  // of a tile on the diagonal: the part below it
    for (std::size_t b = b0; b < end; ++b) turned[b - b0] = v[b * stride + a];
    double direct = 0, exchange = 0;
    for (std::size_t b = b0; b < end; ++b) {
      const double x = row[b], y = turned[b - b0], weight = 1.0 / (left - e[b]);
      direct += (x * x + y * y) * weight;
      exchange += x * y * weight;
    }
    sums.direct += direct;
    sums.exchange += 2 * exchange;
  }
  return sums;
}

}  // namespace

PairSums pair_sums(const double* v, std::size_t stride, double gap, const double* a, std::size_t rows,
                   const double* b, std::size_t columns, bool square) noexcept {
  PairSums sums{0, 0};
  if (!square) {
    for (std::size_t r = 0; r < rows; ++r) {
      double direct = 0;
      for (std::size_t c = 0; c < columns; ++c)
        direct += v[r * stride + c] * v[r * stride + c] / (gap - a[r] - b[c]);
      sums.direct += direct;
    }
    return sums;
  }
  for (std::size_t a0 = 0; a0 < rows; a0 += tile)
    for (std::size_t b0 = 0; b0 <= a0; b0 += tile) {
      const auto part =
          mirrored(v, stride, gap, a, a0, std::min(rows, a0 + tile), b0, std::min(rows, b0 + tile));
      sums.direct += part.direct;
      sums.exchange += part.exchange;
    }
  for (std::size_t r = 0; r < rows; ++r) {
    const double diagonal = v[r * stride + r] * v[r * stride + r] / (gap - 2 * a[r]);
    sums.direct += diagonal;
    sums.exchange += diagonal;
  }
  return sums;
}

}  // namespace outcore::chem
