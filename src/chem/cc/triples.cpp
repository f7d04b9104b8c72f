#include "chem/cc/triples.hpp"

#include <cassert>

#include "chem/cc/triples_kernels.hpp"

namespace outcore::chem::cc {
namespace {

/// A matrix by rows, or given by columns.
struct Factor {
  const double* data;
  bool by_columns = false;
};

/// c[rows][columns] (+)= a[rows][inner] b[inner][columns], by rows. By rows of ours is by columns of
/// Fortran's, of the transposed matrices.
void product(Gemm gemm, std::size_t rows, std::size_t columns, std::size_t inner, const Factor& a,
             const double* b, double* c, bool adds) {
  const int m = int(columns), n = int(rows), k = int(inner), stride = a.by_columns ? n : k;
  const double one = 1, beta = adds ? 1 : 0;
  gemm("N", a.by_columns ? "T" : "N", &m, &n, &k, &one, b, &m, a.data, &stride, &beta, c, &m);
}

}  // namespace

void triples_energies(Gemm gemm, int occupied, int virtuals, const double* energies, const Single& a,
                      const Single& b, const Double& ab, const Thirds& c, const ThirdDoubles& ac,
                      const ThirdDoubles& bc, TriplesWork& work, double* found) {
  assert(c.count <= triples_lanes);
  const auto o = std::size_t(occupied), v = std::size_t(virtuals);
  const std::size_t square = o * o, one = o * c.count, two = square * c.count, all = o * two;
  work.w.resize(4 * all);
  double *const ijk = work.w.data(), *const jik = ijk + all, *const ikj = jik + all, *const jki = ikj + all;
  const auto set = [&](std::size_t rows, std::size_t columns, const Factor& x, const double* y, double* out) {
    product(gemm, rows, columns, v, x, y, out, false);
  };
  const auto add = [&](std::size_t rows, std::size_t columns, std::size_t inner, const Factor& x,
                       const double* y,
                       double* out) { product(gemm, rows, columns, inner, x, y, out, true); };
  // Orbitals x, y, z with i, j, k: (ix|yd) t_jk^dz, and less (ix|jl) t_kl^zy. Each goes into the array with
  // the order of i, j, k in which it is one product.
  set(o, two, {ab.integrals}, c.amplitudes, ijk);                 // abc
  add(square, one, v, {b.amplitudes, true}, ac.turned, ijk);      // cab
  add(square, one, o, {a.integrals}, bc.amplitudes, ijk);         // abc
  set(o, two, {ab.turned}, c.amplitudes, jik);                    // bac
  add(square, one, v, {a.amplitudes, true}, bc.turned, jik);      // cba
  add(square, one, o, {b.integrals}, ac.amplitudes, jik);         // bac
  set(square, one, {a.turned, true}, bc.integrals, ikj);          // bca
  add(square, one, o, {a.integrals}, bc.turned_amplitudes, ikj);  // acb
  add(o, two, o, {ab.amplitudes}, c.integrals, ikj);              // cba
  set(square, one, {b.turned, true}, ac.integrals, jki);          // acb
  add(square, one, o, {b.integrals}, ac.turned_amplitudes, jki);  // bca
  add(o, two, o, {ab.amplitudes, true}, c.integrals, jki);        // cab
  const Disconnected parts{a.t1, a.fock, b.t1,        b.fock,        ab.exchange, ab.amplitudes,
                           c.t1, c.fock, ac.exchange, ac.amplitudes, bc.exchange, bc.amplitudes};
  triples_kernels().energies(o, c.count, energies, a.energy + b.energy, c.energies, {ijk, jik, ikj, jki},
                             parts, found);
}

}  // namespace outcore::chem::cc
