#include "chem/cc/triples.hpp"

namespace outcore::chem::cc {
namespace {

/// out[o][o][o] = integrals[i][d] amplitudes[d][jk] + singles[ij][l] pairs[k][l]: orbitals x, y, z with i, j,
/// k.
void product(Gemm gemm, int o, int v, const double* integrals, const Single& z, const Single& x,
             const double* pairs, double* out) {
  const int square = o * o;
  const double one = 1, zero = 0;
  // By rows of ours is by columns of Fortran's, of the transposed matrices.
  gemm("N", "N", &square, &o, &v, &one, z.amplitudes, &square, integrals, &v, &zero, out, &square);
  gemm("T", "N", &o, &square, &o, &one, pairs, &o, x.integrals, &o, &one, out, &o);
}

/// w[i0][i1][i2] += part[i_p0][i_p1][i_p2]
template <int p0, int p1, int p2>
void add_permuted(std::size_t o, const double* part, double* w) {
  for (std::size_t i = 0; i < o; ++i)
    for (std::size_t j = 0; j < o; ++j) {
      double* const row = w + (i * o + j) * o;
      const std::size_t index[3] = {i, j, 0};
      const std::size_t first = (index[p0] * o + index[p1]) * o + index[p2];
      const std::size_t step = p0 == 2 ? o * o : p1 == 2 ? o : 1;
      for (std::size_t k = 0; k < o; ++k) row[k] += part[first + k * step];
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

}  // namespace

double triples_energy(Gemm gemm, int occupied, int virtuals, const double* energies, const Single& a,
                      const Single& b, const Single& c, const Double& ab, const Double& ac, const Double& bc,
                      TriplesWork& work) {
  const auto o = std::size_t(occupied);
  work.w.assign(o * o * o, 0.0);
  work.part.resize(o * o * o);
  work.v.resize(o * o * o);
  work.turned.resize(3 * o * o);
  // t_kl^yx of t_kl^xy
  double* const turned[3] = {work.turned.data(), work.turned.data() + o * o, work.turned.data() + 2 * o * o};
  const double* const straight[3] = {ab.amplitudes, ac.amplitudes, bc.amplitudes};
  for (int pair = 0; pair < 3; ++pair)
    for (std::size_t k = 0; k < o; ++k)
      for (std::size_t l = 0; l < o; ++l) turned[pair][k * o + l] = straight[pair][l * o + k];
  double* const part = work.part.data();
  double* const w = work.w.data();
  // Orbitals x, y, z with i, j, k: (ix|yd) t_jk^dz - (ix|jl) t_kl^zy; the pairs are those of [k][l] of
  // t_kl^zy.
  product(gemm, occupied, virtuals, ab.integrals, c, a, turned[2], part);  // a b c
  add_permuted<0, 1, 2>(o, part, w);
  product(gemm, occupied, virtuals, ac.integrals, b, a, bc.amplitudes, part);  // a c b
  add_permuted<0, 2, 1>(o, part, w);
  product(gemm, occupied, virtuals, ab.turned, c, b, turned[1], part);  // b a c
  add_permuted<1, 0, 2>(o, part, w);
  product(gemm, occupied, virtuals, bc.integrals, a, b, ac.amplitudes, part);  // b c a
  add_permuted<1, 2, 0>(o, part, w);
  product(gemm, occupied, virtuals, ac.turned, b, c, turned[0], part);  // c a b
  add_permuted<2, 0, 1>(o, part, w);
  product(gemm, occupied, virtuals, bc.turned, a, c, ab.amplitudes, part);  // c b a
  add_permuted<2, 1, 0>(o, part, w);
  double* const v = work.v.data();
  disconnected(o, a, b, c, ab, ac, bc, v);
  const double above = a.energy + b.energy + c.energy;
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

}  // namespace outcore::chem::cc
