#include "chem/cc/triples.hpp"

#include <algorithm>

namespace outcore::chem::cc {
namespace {

// Of the three arrays of a thread together: they stay in the caches of a core.
constexpr std::size_t work_bytes = 3 << 19;

/// C[rows][columns] (+)= A[rows][inner] B[inner][columns], all by rows. By rows of ours is by columns of
/// Fortran's, of the transposed matrices.
struct Products {
  Gemm gemm;

  void set(std::size_t rows, std::size_t columns, std::size_t inner, const double* a, const double* b,
           double* c) const {
    call("N", rows, columns, inner, a, b, columns, 0, c);
  }
  void add(std::size_t rows, std::size_t columns, std::size_t inner, const double* a, const double* b,
           double* c) const {
    call("N", rows, columns, inner, a, b, columns, 1, c);
  }
  /// The same of B given as [columns][inner].
  void add_turned(std::size_t rows, std::size_t columns, std::size_t inner, const double* a, const double* b,
                  double* c) const {
    call("T", rows, columns, inner, a, b, inner, 1, c);
  }

 private:
  void call(const char* turn, std::size_t rows, std::size_t columns, std::size_t inner, const double* a,
            const double* b, std::size_t b_stride, double beta, double* c) const {
    const int m = int(columns), n = int(rows), k = int(inner), ldb = int(b_stride);
    const double one = 1;
    gemm(turn, "N", &m, &n, &k, &one, b, &ldb, a, &k, &beta, c, &m);
  }
};

/// w[i][j][k] += ik[j][i][k] + ij[k][i][j]
void add_permuted(std::size_t o, const double* ik, const double* ij, double* w) {
  constexpr std::size_t tile = 16;
  const std::size_t square = o * o;
  for (std::size_t i = 0; i < o; ++i)
    for (std::size_t j = 0; j < o; ++j) {
      double* const row = w + (i * o + j) * o;
      const double* const part = ik + (j * o + i) * o;
      for (std::size_t k = 0; k < o; ++k) row[k] += part[k];
    }
  for (std::size_t begin = 0; begin < square; begin += tile) {
    const std::size_t end = begin + tile < square ? begin + tile : square;
    for (std::size_t k = 0; k < o; ++k) {
      const double* const part = ij + k * square;
      for (std::size_t pair = begin; pair < end; ++pair) w[pair * o + k] += part[pair];
    }
  }
}

/// The disconnected part.
void disconnected(std::size_t o, const Single& a, const Single& b, const Single& c, const Double& ab,
                  const Double& ac, const Double& bc, double* v) {
  for (std::size_t i = 0; i < o; ++i)
    for (std::size_t j = 0; j < o; ++j) {
      double* const row = v + (i * o + j) * o;
      const double g = ab.exchange[i * o + j], t = ab.amplitudes[i * o + j];
      for (std::size_t k = 0; k < o; ++k)
        row[k] = g * c.t1[k] + t * c.fock[k] + ac.exchange[i * o + k] * b.t1[j] +
                 ac.amplitudes[i * o + k] * b.fock[j] + bc.exchange[j * o + k] * a.t1[i] +
                 bc.amplitudes[j * o + k] * a.fock[i];
    }
}

/// Six elements of w that differ by the order of i, j, k: ijk, jki, kij, ikj, jik, kji.
struct Six {
  double x[6];
  Six(std::size_t o, const double* w, std::size_t i, std::size_t j, std::size_t k)
      : x{w[(i * o + j) * o + k], w[(j * o + k) * o + i], w[(k * o + i) * o + j],
          w[(i * o + k) * o + j], w[(j * o + i) * o + k], w[(k * o + j) * o + i]} {}
};

/// sum over the six orders of (w + v) (4 w_ijk + w_jki + w_kij - 2 w_ikj - 2 w_jik - 2 w_kji)
double six_orders(const Six& w, const Six& v) {
  const double even = w.x[0] + w.x[1] + w.x[2], odd = w.x[3] + w.x[4] + w.x[5];
  double sum = 0;
  for (int p = 0; p < 3; ++p) {
    sum += (w.x[p] + v.x[p]) * (3 * w.x[p] + even - 2 * odd);
    sum += (w.x[p + 3] + v.x[p + 3]) * (3 * w.x[p + 3] + odd - 2 * even);
  }
  return sum;
}

/// The energy of orbitals a, b, c by connected amplitudes w and disconnected ones v, [i][j][k].
double energy_of(std::size_t o, const double* energies, double above, const double* w, const double* v) {
  double sum = 0;
  for (std::size_t i = 0; i < o; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double row = 0;
      for (std::size_t k = 0; k <= j; ++k) {
        const double same = i == j ? (j == k ? 1.0 / 6 : 0.5) : (j == k ? 0.5 : 1.0);
        row += same * six_orders({o, w, i, j, k}, {o, v, i, j, k}) /
               (energies[i] + energies[j] + energies[k] - above);
      }
      sum += row;
    }
  return 2 * sum;
}

/// What lies `n` virtual orbitals after the first.
Single after(const Single& x, std::size_t n, std::size_t o, std::size_t v) {
  const std::size_t amplitudes = n * v * o * o, integrals = n * o * o * o;
  return {x.amplitudes + amplitudes,
          x.turned_amplitudes + amplitudes,
          x.integrals + integrals,
          x.turned_integrals + integrals,
          x.t1 + n * o,
          x.fock + n * o,
          x.energy + n};
}

Double after(const Double& x, std::size_t n, std::size_t o, std::size_t v) {
  return {x.integrals + n * o * v, x.turned + n * o * v, x.amplitudes + n * o * o, x.exchange + n * o * o};
}

}  // namespace

void triples_energies(Gemm gemm, int occupied, int virtuals, const double* energies, const Single& a,
                      const Single& b, const Single& first, const Double& ab, const Double& first_ac,
                      const Double& first_bc, std::size_t count, TriplesWork& work, double* found) {
  const auto o = std::size_t(occupied), v = std::size_t(virtuals);
  const std::size_t square = o * o, cube = square * o;
  const std::size_t most = std::max<std::size_t>(1, work_bytes / (3 * sizeof(double) * cube));
  for (auto* each : {&work.w, &work.part, &work.turned}) each->resize(std::min(most, count) * cube);
  work.v.resize(cube);
  double *const w = work.w.data(), *const ik = work.part.data(), *const ij = work.turned.data();
  const Products products{gemm};
  for (std::size_t begin = 0; begin < count; begin += most) {
    const std::size_t n = std::min(most, count - begin);
    const Single c = after(first, begin, o, v);
    const Double ac = after(first_ac, begin, o, v), bc = after(first_bc, begin, o, v);
    // Orbitals x, y, z with i, j, k: (ix|yd) t_jk^dz - (ix|jl) t_kl^zy. Results that differ in the order of
    // i, j, k go into three arrays: w[c][i][j][k], ik[c][j][i][k], ij[c][k][i][j].
    for (std::size_t each = 0; each < n; ++each) {
      const double* const amplitudes = c.amplitudes + each * v * square;
      products.set(o, square, v, ab.integrals, amplitudes, w + each * cube);  // a b c
      products.set(o, square, v, ab.turned, amplitudes, ik + each * cube);    // b a c
      products.add(square, o, o, a.integrals, bc.amplitudes + each * square, w + each * cube);
      products.add(square, o, o, b.integrals, ac.amplitudes + each * square, ik + each * cube);
      products.add_turned(o, square, o, ab.amplitudes, c.turned_integrals + each * cube,
                          w + each * cube);  // c b a
    }
    products.add(n * o, square, v, ac.integrals, b.turned_amplitudes, w);  // a c b
    products.add_turned(n * o, square, o, bc.amplitudes, a.integrals, ik);
    products.add(n * o, square, v, bc.integrals, a.turned_amplitudes, ik);  // b c a
    products.add_turned(n * o, square, o, ac.amplitudes, b.integrals, w);
    products.set(n * o, square, v, ac.turned, b.amplitudes, ij);  // c a b
    products.add(n * square, o, o, c.integrals, ab.amplitudes, ij);
    products.add(n * o, square, v, bc.turned, a.turned_amplitudes, ij);  // c b a
    for (std::size_t each = 0; each < n; ++each) {
      const Single third = after(c, each, o, v);
      add_permuted(o, ik + each * cube, ij + each * cube, w + each * cube);
      disconnected(o, a, b, third, ab, after(ac, each, o, v), after(bc, each, o, v), work.v.data());
      const double above = *a.energy + *b.energy + *third.energy;
      found[begin + each] = energy_of(o, energies, above, w + each * cube, work.v.data());
    }
  }
}

}  // namespace outcore::chem::cc
