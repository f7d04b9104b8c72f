// Bodies of the kernels, for one instruction set: see base/instruction_sets.hpp, also for what may not be
// used.

#include "chem/hf/kernels.hpp"

namespace outcore::chem {
namespace {

// Packed rows have no alignment. The types must be written out: auto would drop the alignment.
using Int16 [[gnu::aligned(1), gnu::may_alias]] = std::int16_t;
using Int32 [[gnu::aligned(1), gnu::may_alias]] = std::int32_t;
using Double [[gnu::aligned(1), gnu::may_alias]] = double;

void largest_of_columns(const double* row, std::size_t length, double* largest) {
  for (std::size_t c = 0; c < length; ++c) {
    const double value = row[c] < 0 ? -row[c] : row[c];
    largest[c] = value > largest[c] ? value : largest[c];
  }
}

inline std::int32_t rounded(double value) {
  return std::int32_t(__builtin_nearbyint(value));
}

void pack_row(const double* row, const std::int32_t* source, const Widths& n, const double* per_step,
              const float* dither, std::byte* out) {
  std::size_t column = 0;
  const auto next = [&] {
    const std::size_t c = column++;
    return rounded(row[source[c]] * per_step[c] - double(dither[c]));
  };
  Double* p8 = reinterpret_cast<Double*>(out);
  for (; column < n.n8; ++column) p8[column] = row[source[column]];
  Int32* p4 = reinterpret_cast<Int32*>(p8 + n.n8);
  for (std::size_t c = 0; c < n.n4; ++c) p4[c] = next();
  Int16* p2 = reinterpret_cast<Int16*>(p4 + n.n4);
  auto* low = reinterpret_cast<std::uint8_t*>(p2 + n.n3 + n.n2);
  for (std::size_t c = 0; c < n.n3; ++c) {
    const std::int32_t value = next();
    p2[c] = std::int16_t(value >> 8);
    low[c] = std::uint8_t(value);
  }
  for (std::size_t c = 0; c < n.n2; ++c) p2[n.n3 + c] = std::int16_t(next());
  auto* p1 = reinterpret_cast<std::int8_t*>(low + n.n3);
  for (std::size_t c = 0; c < n.n1; ++c) p1[c] = std::int8_t(next());
}

void unpack_row(const std::byte* in, const Widths& n, const double* steps, const float* dither, double* row) {
  const Double* p8 = reinterpret_cast<const Double*>(in);
  for (std::size_t c = 0; c < n.n8; ++c) row[c] = p8[c];
  row += n.n8, steps += n.n8, dither += n.n8;
  const Int32* p4 = reinterpret_cast<const Int32*>(p8 + n.n8);
  for (std::size_t c = 0; c < n.n4; ++c) row[c] = (double(p4[c]) + double(dither[c])) * steps[c];
  row += n.n4, steps += n.n4, dither += n.n4;
  const Int16* p2 = reinterpret_cast<const Int16*>(p4 + n.n4);
  const auto* low = reinterpret_cast<const std::uint8_t*>(p2 + n.n3 + n.n2);
  for (std::size_t c = 0; c < n.n3; ++c)
    row[c] = (double(std::int32_t(p2[c]) * 256 + std::int32_t(low[c])) + double(dither[c])) * steps[c];
  row += n.n3, steps += n.n3, dither += n.n3, p2 += n.n3;
  for (std::size_t c = 0; c < n.n2; ++c) row[c] = (double(p2[c]) + double(dither[c])) * steps[c];
  row += n.n2, steps += n.n2, dither += n.n2;
  const auto* p1 = reinterpret_cast<const std::int8_t*>(low + n.n3);
  for (std::size_t c = 0; c < n.n1; ++c) row[c] = (double(p1[c]) + double(dither[c])) * steps[c];
}

using Vector [[gnu::vector_size(OUTCORE_LANE * sizeof(double))]] = double;
using LooseVector [[gnu::vector_size(OUTCORE_LANE * sizeof(double)), gnu::aligned(8), gnu::may_alias]] =
    double;

inline const LooseVector& vector(const double* at) {
  return *reinterpret_cast<const LooseVector*>(at);
}
inline LooseVector& vector(double* at) {
  return *reinterpret_cast<LooseVector*>(at);
}

inline double total(const Vector& sum) {
  double result = 0;
  for (int at = 0; at < OUTCORE_LANE; ++at) result += sum[at];
  return result;
}

// The number of rows is a compile-time constant, so that the rows D_a, D_b, K_a, K_b pass through registers
// once for all of them.
template <int rows>
[[gnu::always_inline]] inline void contract_rows(PairOfFunctions& p, int first) {
  const std::size_t length = p.length;
  const double* values = p.values + std::size_t(first) * length;
  const double* d_k = p.d_k + std::size_t(first) * length;
  double* j_k = p.j_k + std::size_t(first) * length;
  Vector sum_j{}, sum_a[rows] = {}, sum_b[rows] = {}, d_ac[rows], d_bc[rows];
#pragma GCC unroll 8
  for (int c = 0; c < rows; ++c)
    d_ac[c] = Vector{} + p.d_ac[first + c], d_bc[c] = Vector{} + p.d_bc[first + c];
  const Vector d_ab = Vector{} + p.d_ab;
  for (std::size_t l = 0; l < length; l += OUTCORE_LANE) {
    const Vector d_a = vector(p.d_a + l), d_b = vector(p.d_b + l);
    Vector k_a = vector(p.k_a + l), k_b = vector(p.k_b + l);
#pragma GCC unroll 8
    for (int c = 0; c < rows; ++c) {
      const std::size_t at = std::size_t(c) * length + l;
      const Vector v = vector(values + at);
      sum_j += v * vector(d_k + at);
      sum_a[c] += v * d_b;
      sum_b[c] += v * d_a;
      vector(j_k + at) += d_ab * v;
      k_a += d_bc[c] * v;
      k_b += d_ac[c] * v;
    }
    vector(p.k_a + l) = k_a;
    vector(p.k_b + l) = k_b;
  }
  p.j_ab += total(sum_j);
#pragma GCC unroll 8
  for (int c = 0; c < rows; ++c) {
    p.k_ac[first + c] += total(sum_a[c]);
    p.k_bc[first + c] += total(sum_b[c]);
  }
}

void contract(PairOfFunctions& p, int rows) {
  constexpr int at_once = OUTCORE_LANE == 8 ? 3 : OUTCORE_LANE == 4 ? 2 : 1;  // as many as the registers hold
  int c = 0;
  for (; c + at_once <= rows; c += at_once) contract_rows<at_once>(p, c);
  for (; c + 2 <= rows; c += 2) contract_rows<2>(p, c);
  for (; c < rows; ++c) contract_rows<1>(p, c);
}

}  // namespace

const Kernels OUTCORE_VARIANT(kernels) = {largest_of_columns, pack_row, unpack_row, contract};

}  // namespace outcore::chem
