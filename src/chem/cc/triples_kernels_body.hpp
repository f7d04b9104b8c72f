// Bodies of the inner loops, for one instruction set: see base/instruction_sets.hpp, also for what may not be
// used. Matrix products do not use BLAS: with tens of occupied orbitals BLAS spends a third of its time on
// copies of amplitudes, which lie here in the order in which they are read. A tile of the result stays in
// registers while all its products are added, and the next data is prefetched meanwhile.

#include "chem/cc/triples_kernels.hpp"

namespace outcore::chem::cc {
namespace {

using Size = std::size_t;

// A vector without alignment. The type must be written out: auto would drop the alignment.
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
constexpr int max_vectors = 3;  // of a row of a tile
// Number of virtual orbitals over which products are summed at a time. It is large, so that sums are seldom
// begun and ended; the data of these orbitals stays in the second-level cache. Narrow registers read more
// from the cache for the same work, so for them the data must stay in the first-level cache.
constexpr Size max_inner = OUTCORE_LANE == 8 ? 256 : 24;

constexpr int second_cache = 2;  // as __builtin_prefetch names it
constexpr Size line = 8;         // of a cache

/// Rows of a tile: its sums, a row of the right factor and an element of the left one fit into registers.
constexpr int max_rows(int vectors) {
  const int rows = (registers - 1) / vectors - 1;
  return rows < 8 ? rows : 8;
}

/// A product of matrices, sum_k a[k][r] b[k][n]; rows of both have `padded` elements. ahead: an address from
/// which cache lines are prefetched meanwhile, one for each term of the sum; any address is allowed.
struct Product {
  const double *a, *b;
  Size inner;
  const double* ahead;
};

/// c[r][n] += products; rows of c are `stride` apart.
struct Sum {
  double* c;
  Size stride;
  const Product* products;
  Size count;
};

template <int width, int vectors, int rows>
void add_tile(const Sum& of, Size padded, Size row, Size column) {
  using Vector = typename Packed<width>::Type;
  using LooseVector = typename Loose<width>::Type;
  double* const c = of.c + row * of.stride + column;
  Vector sum[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 3
    for (int n = 0; n < vectors; ++n)
      sum[r][n] = *reinterpret_cast<const LooseVector*>(c + Size(r) * of.stride + n * width);
  for (Size product = 0; product < of.count; ++product) {
    const double* a = of.products[product].a + row;
    const double* b = of.products[product].b + column;
    const Size inner = of.products[product].inner;
    const double* ahead = of.products[product].ahead;
    for (Size k = 0; k < inner; ++k) {
      __builtin_prefetch(ahead, 0, second_cache);
      ahead += line;
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
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 3
    for (int n = 0; n < vectors; ++n)
      *reinterpret_cast<LooseVector*>(c + Size(r) * of.stride + n * width) = sum[r][n];
}

/// As many rows as `count`, which is between 1 and `most`.
template <int width, int vectors, int most>
void add_group(Size count, const Sum& of, Size padded, Size row, Size column) {
  if constexpr (most > 1)
    if (count < most) return add_group<width, vectors, most - 1>(count, of, padded, row, column);
  add_tile<width, vectors, most>(of, padded, row, column);
}

/// All rows of some columns.
template <int width, int vectors>
void add_columns(Size rows, const Sum& of, Size padded, Size column) {
  constexpr int most = max_rows(vectors);
  const Size groups = (rows + most - 1) / most;
  for (Size group = 0; group < groups; ++group) {
    const Size first = rows * group / groups, end = rows * (group + 1) / groups;
    add_group<width, vectors, most>(end - first, of, padded, first, column);
  }
}

void add(Size rows, const Sum& of, Size padded) {
  constexpr Size lane = OUTCORE_LANE;
  const Size vectors = padded / lane;
  const Size panels = (vectors + max_vectors - 1) / max_vectors;
  for (Size panel = 0; panel < panels; ++panel) {
    const Size first = vectors * panel / panels, end = vectors * (panel + 1) / panels;
    const auto add_panel = end - first == 3   ? add_columns<lane, 3>
                           : end - first == 2 ? add_columns<lane, 2>
                                              : add_columns<lane, 1>;
    add_panel(rows, of, padded, first * lane);
  }
  if constexpr (lane > triples_padding)
    if (padded % lane) add_columns<int(triples_padding), 1>(rows, of, padded, vectors * lane);
}

void connected(const TriplesSizes& sizes, const ThreeVirtuals& of, double* w) {
  const Size o = sizes.occupied, padded = sizes.padded, plane = o * padded;
  const auto& [a, b, c, ab, ac, bc] = of;
  for (Size n = 0; n < o * plane; ++n) w[n] = 0;
  const Size chunks = (sizes.virtuals + max_inner - 1) / max_inner;
  const Size whole = sizes.virtuals * padded;
  for (Size x = 0; x < o; ++x)
    for (Size chunk = 0; chunk < chunks; ++chunk) {
      const Size begin = sizes.virtuals * chunk / chunks, d = sizes.virtuals * (chunk + 1) / chunks - begin;
      const Size first = begin * padded, own = x * plane, part = d * padded;
      const Size both = x * whole + first;
      const double* const t_c = c.amplitudes + both;
      // The data of c + 1 follows. It is prefetched, not read: amplitudes part by part, integrals over all x.
      const Size next = whole + x * sizes.virtuals / o * padded;
      const double* const more = c.turned_integrals + own + plane;
      // Orbitals x, y, z with i, j, k: (ix|yd) t_jk^dz and, after all d, -(ix|jl) t_kl^zy. In w[i][j][k],
      // products with j at x give rows i, those with i at x give rows j.
      const Size last = chunk + 1 == chunks ? 3 : 0;
      const Product rows_i[] = {
          {ab.integrals + first, t_c, d, t_c + part},                         // a b c
          {ac.integrals + first, b.turned + both, d, t_c + part + line * d},  // a c b
          {a.turned_integrals + own, bc.amplitudes, o, more},                 // a b c
          {ac.turned_amplitudes, b.integrals + own, o, more},                 // b c a
          {ab.turned_amplitudes, c.turned_integrals + own, o, more},          // c b a
      };
      add(o, {w + x * padded, plane, rows_i, 2 + last}, padded);
      const Product rows_j[] = {
          {ab.turned + first, t_c, d, ac.integrals + next},                  // b a c
          {bc.integrals + first, a.turned + both, d, ac.turned + next},      // b c a
          {b.amplitudes + both, ac.turned + first, d, bc.integrals + next},  // c a b
          {a.turned + both, bc.turned + first, d, bc.turned + next},         // c b a
          {b.turned_integrals + own, ac.amplitudes, o, more},                // b a c
          {bc.turned_amplitudes, a.integrals + own, o, more},                // a c b
          {ab.amplitudes, c.turned_integrals + own, o, more},                // c a b
      };
      add(o, {w + x * plane, padded, rows_j, 4 + last}, padded);
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
        if (i == k) continue;  // three equal orbitals contribute nothing
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

/// Where elements ijk, jki, kij, ikj, jik, kji are.
struct Orders {
  Size at[6];
  Orders(Size o, Size padded, Size i, Size j, Size k)
      : at{(i * o + j) * padded + k, (j * o + k) * padded + i, (k * o + i) * padded + j,
           (i * o + k) * padded + j, (j * o + i) * padded + k, (k * o + j) * padded + i} {}
};

double derivatives(const TriplesSizes& sizes, const double* energies, double above, double* w, double* v,
                   double* by_w) {
  const Size o = sizes.occupied, padded = sizes.padded;
  double sum = 0;
  for (Size i = 0; i < o; ++i)
    for (Size j = 0; j <= i; ++j) {
      const double below = energies[i] + energies[j] - above;
      for (Size k = 0; k <= j; ++k) {
        const Orders in(o, padded, i, j, k), out(o, o, i, j, k);
        const double part = 1 / (below + energies[k]);
        double x[6], y[6];
        for (int p = 0; p < 6; ++p) {
          x[p] = w[in.at[p]];
          y[p] = x[p] + v[in.at[p]];
        }
        const double even_x = x[0] + x[1] + x[2], odd_x = x[3] + x[4] + x[5];
        const double even_y = y[0] + y[1] + y[2], odd_y = y[3] + y[4] + y[5];
        double orders = 0;
        for (int p = 0; p < 6; ++p) {
          const bool even = p < 3;
          const double z = 3 * x[p] + (even ? even_x - 2 * odd_x : odd_x - 2 * even_x);
          const double u = 3 * y[p] + (even ? even_y - 2 * odd_y : odd_y - 2 * even_y);
          orders += z * y[p];
          w[in.at[p]] = z * part;
          v[in.at[p]] = y[p] * part;
          by_w[out.at[p]] = 2 * (z + u) * part;
        }
        const bool some = i == j || j == k;
        sum += (some ? (i == k ? 1.0 / 6 : 0.5) : 1.0) * orders * part;
      }
    }
  return sum;
}

/// to[p][q] = from[q][p] of o times o elements.
void transpose(Size o, const double* from, Size from_stride, double* to, Size to_stride) {
  for (Size p = 0; p < o; ++p)
    for (Size q = 0; q < o; ++q) to[p * to_stride + q] = from[q * from_stride + p];
}

void densities(const TriplesSizes& sizes, const double* left, const double* right, TriplesWork& work,
               double* oo) {
  const Size o = sizes.occupied, padded = sizes.padded, plane = o * padded;
  const auto sum = [&](const double* one, const double* other) {
    const Product product{one, other, o * o, one};
    add(o, {oo, padded, &product, 1}, padded);
  };
  sum(left, right);
  for (const bool first : {false, true}) {
    for (Size x = 0; x < o; ++x)  // planes [j][k] of i become [k][j], or planes [i][k] of j become [k][i]
      for (const bool is_left : {true, false}) {
        const double* const from = (is_left ? left : right) + x * (first ? padded : plane);
        double* const to = (is_left ? work.left : work.right).data() + x * plane;
        transpose(o, from, first ? plane : padded, to, padded);
      }
    sum(work.left.data(), work.right.data());
  }
}

}  // namespace

const TriplesKernels OUTCORE_VARIANT(triples_kernels) = {connected, disconnected, energy, derivatives,
                                                         densities};

}  // namespace outcore::chem::cc
