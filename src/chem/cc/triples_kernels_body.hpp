// Bodies of the inner loops, for one instruction set: see base/instruction_sets.hpp, also for what may not be
// used.
//
// Products of matrices are our own, not of BLAS: with tens of occupied orbitals BLAS spends a third of its
// time on copies of amplitudes, which are here in the order in which they are read. A tile of the result is
// in registers, what it is made of in the nearest cache; each piece of amplitudes is fetched once for three
// orbitals a, b, c.

#include "chem/cc/triples_kernels.hpp"

namespace outcore::chem::cc {
namespace {

using Size = std::size_t;

// May be anywhere. The type must be written out: auto would drop what it says of alignment.
template <int width>
struct Loose {
  using Type [[gnu::vector_size(width * sizeof(double)), gnu::aligned(sizeof(double)), gnu::may_alias]] =
      double;
};
template <int width>
struct Packed {
  using Type [[gnu::vector_size(width * sizeof(double))]] = double;
};

constexpr int registers = OUTCORE_LANE == 8 ? 32 : 16;
constexpr int most_vectors = 3;   // of a row of a tile
constexpr Size most_inner = 128;  // terms of a sum, whose columns stay in the nearest cache

/// Rows of a tile, so that its sums, a row of the right factor and an element of the left one are in
/// registers.
constexpr int most_rows(int vectors) {
  const int rows = (registers - 1) / vectors - 1;
  return rows < 8 ? rows : 8;
}

/// c[r][n] += sum_k a[k][r] b[k][n]. Each row of a and of b has `padded` elements, those of c are `stride`
/// apart.
struct Product {
  const double *a, *b;
  double* c;
  Size stride;
};

template <int width, int vectors, int rows>
void add_tile(Size inner, Size padded, const double* a, const double* b, double* c, Size stride) {
  using Vector = typename Packed<width>::Type;
  using LooseVector = typename Loose<width>::Type;
  Vector sum[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 3
    for (int n = 0; n < vectors; ++n)
      sum[r][n] = *reinterpret_cast<const LooseVector*>(c + Size(r) * stride + n * width);
  for (Size k = 0; k < inner; ++k) {
    Vector right[vectors];
#pragma GCC unroll 3
    for (int n = 0; n < vectors; ++n) right[n] = *reinterpret_cast<const LooseVector*>(b + n * width);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 3
      for (int n = 0; n < vectors; ++n) sum[r][n] += a[r] * right[n];
    a += padded;
    b += padded;
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 3
    for (int n = 0; n < vectors; ++n)
      *reinterpret_cast<LooseVector*>(c + Size(r) * stride + n * width) = sum[r][n];
}

/// As many rows as `count`, which is between 1 and `most`.
template <int width, int vectors, int most>
void add_group(Size count, Size inner, Size padded, const Product& x) {
  if constexpr (most > 1)
    if (count < most) return add_group<width, vectors, most - 1>(count, inner, padded, x);
  add_tile<width, vectors, most>(inner, padded, x.a, x.b, x.c, x.stride);
}

/// All rows of some columns.
template <int width, int vectors>
void add_rows(Size rows, Size inner, Size padded, const Product& x) {
  constexpr int most = most_rows(vectors);
  const Size groups = (rows + most - 1) / most;
  for (Size group = 0; group < groups; ++group) {
    const Size first = rows * group / groups, end = rows * (group + 1) / groups;
    add_group<width, vectors, most>(end - first, inner, padded,
                                    {x.a + first, x.b, x.c + first * x.stride, x.stride});
  }
}

/// Some columns of several products over the same number of terms.
template <int width, int vectors>
void add_columns(Size rows, Size inner, Size padded, Size column, const Product* products, Size count) {
  const Size chunks = (inner + most_inner - 1) / most_inner;
  for (Size chunk = 0; chunk < chunks; ++chunk) {
    const Size first = inner * chunk / chunks, end = inner * (chunk + 1) / chunks;
    for (Size n = 0; n < count; ++n) {
      const Product& x = products[n];
      const Product part{x.a + first * padded, x.b + first * padded + column, x.c + column, x.stride};
      add_rows<width, vectors>(rows, end - first, padded, part);
    }
  }
}

void add_products(Size rows, Size inner, Size padded, const Product* products, Size count) {
  constexpr Size lane = OUTCORE_LANE;
  const Size vectors = padded / lane;
  const Size panels = (vectors + most_vectors - 1) / most_vectors;
  for (Size panel = 0; panel < panels; ++panel) {
    const Size first = vectors * panel / panels, end = vectors * (panel + 1) / panels;
    const auto add = end - first == 3   ? add_columns<lane, 3>
                     : end - first == 2 ? add_columns<lane, 2>
                                        : add_columns<lane, 1>;
    add(rows, inner, padded, first * lane, products, count);
  }
  if constexpr (lane > triples_padding)
    if (padded % lane)
      add_columns<int(triples_padding), 1>(rows, inner, padded, vectors * lane, products, count);
}

void connected(const TriplesSizes& sizes, const ThreeVirtuals& of, double* w) {
  const Size o = sizes.occupied, padded = sizes.padded, v = sizes.virtuals, plane = o * padded;
  const auto& [a, b, c, ab, ac, bc] = of;
  for (Size n = 0; n < o * plane; ++n) w[n] = 0;
  for (Size x = 0; x < o; ++x) {
    // Rows j of w[x][j][k], and rows i of w[i][x][k].
    double *const j_rows = w + x * plane, *const i_rows = w + x * padded;
    const double* const t_a = a.turned + x * v * padded;
    const double* const t_b = b.amplitudes + x * v * padded;
    const double* const turned_b = b.turned + x * v * padded;
    const double* const t_c = c.amplitudes + x * v * padded;
    // Orbitals x, y, z with i, j, k: (ix|yd) t_jk^dz
    const Product sums_over_virtuals[] = {
        {ab.integrals, t_c, i_rows, plane},       // a b c
        {ab.turned, t_c, j_rows, padded},         // b a c
        {ac.integrals, turned_b, i_rows, plane},  // a c b
        {bc.integrals, t_a, j_rows, padded},      // b c a
        {t_b, ac.turned, j_rows, padded},         // c a b
        {t_a, bc.turned, j_rows, padded},         // c b a
    };
    add_products(o, v, padded, sums_over_virtuals, 6);
    // -(ix|jl) t_kl^zy
    const Product sums_over_occupied[] = {
        {a.turned_integrals + x * plane, bc.amplitudes, i_rows, plane},         // a b c
        {b.turned_integrals + x * plane, ac.amplitudes, j_rows, padded},        // b a c
        {bc.turned_amplitudes, a.integrals + x * plane, j_rows, padded},        // a c b
        {ac.turned_amplitudes, b.integrals + x * plane, i_rows, plane},         // b c a
        {ab.amplitudes, c.turned_integrals + x * plane, j_rows, padded},        // c a b
        {ab.turned_amplitudes, c.turned_integrals + x * plane, i_rows, plane},  // c b a
    };
    add_products(o, o, padded, sums_over_occupied, 6);
  }
}

void disconnected(const TriplesSizes& sizes, const ThreeVirtuals& of, double* v) {
  const Size o = sizes.occupied, padded = sizes.padded;
  const auto& [a, b, c, ab, ac, bc] = of;
  for (Size i = 0; i < o; ++i)
    for (Size j = 0; j < o; ++j) {
      double* const row = v + (i * o + j) * padded;
      const double g_ab = ab.exchange[i * padded + j], t_ab = ab.amplitudes[i * padded + j];
      const double t1_a = a.t1[i], f_a = a.fock[i], t1_b = b.t1[j], f_b = b.fock[j];
      const double *const g_ac = ac.exchange + i * padded, *const t_ac = ac.amplitudes + i * padded;
      const double *const g_bc = bc.exchange + j * padded, *const t_bc = bc.amplitudes + j * padded;
      for (Size k = 0; k < o; ++k)
        row[k] = g_ab * c.t1[k] + t_ab * c.fock[k] + g_ac[k] * t1_b + t_ac[k] * f_b + g_bc[k] * t1_a +
                 t_bc[k] * f_a;
    }
}

double energy(const TriplesSizes& sizes, const double* energies, double above, const double* w,
              const double* v) {
  const Size o = sizes.occupied, padded = sizes.padded;
  double sum = 0;
  for (Size i = 0; i < o; ++i)
    for (Size j = 0; j <= i; ++j) {
      const double below = energies[i] + energies[j] - above;
      double row = 0;
      for (Size k = 0; k <= j; ++k) {
        if (i == k) continue;  // three equal orbitals bring nothing
        // ijk, jki, kij, ikj, jik, kji
        const Size at[6] = {(i * o + j) * padded + k, (j * o + k) * padded + i, (k * o + i) * padded + j,
                            (i * o + k) * padded + j, (j * o + i) * padded + k, (k * o + j) * padded + i};
        const double even = w[at[0]] + w[at[1]] + w[at[2]], odd = w[at[3]] + w[at[4]] + w[at[5]];
        double orders = 0;
        for (int p = 0; p < 3; ++p) {
          const double x = w[at[p]], y = w[at[p + 3]];
          orders += (x + v[at[p]]) * (3 * x + even - 2 * odd) + (y + v[at[p + 3]]) * (3 * y + odd - 2 * even);
        }
        row += (i == j || j == k ? 0.5 : 1.0) * orders / (below + energies[k]);
      }
      sum += row;
    }
  return 2 * sum;
}

}  // namespace

const TriplesKernels OUTCORE_VARIANT(triples_kernels) = {connected, disconnected, energy};

}  // namespace outcore::chem::cc
