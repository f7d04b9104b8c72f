#include "chem/cc/open_triples.hpp"

#include <cstddef>
#include <cstdint>

namespace outcore::chem::cc {
namespace {

/// out[m][n] = factor left[m][k] right[k][n], or += that.
void product(const Blas& blas, std::size_t m, std::size_t n, std::size_t k, double factor, const double* left,
             const double* right, bool add, double* out) {
  if (!n) return;  // no two orbitals: BLAS takes no rows of length 0
  const auto rows = std::int64_t(m), columns = std::int64_t(n), inner = std::int64_t(k);
  blas.product<double>(rows, columns, inner, factor, {left, inner}, {right, columns}, add ? 1 : 0, out,
                       columns);
}

/// The position of the pair i > j.
std::size_t pair(std::size_t i, std::size_t j) {
  return i * (i - 1) / 2 + j;
}

/// out[n] += first x[n] + second y[n]
void add_both(std::size_t count, double first, const double* x, double second, const double* y, double* out) {
  for (std::size_t n = 0; n < count; ++n) out[n] += first * x[n] + second * y[n];
}

}  // namespace

double same_spin_triples(const Blas& blas, const OpenSizes& sizes, const double* energies,
                         const OpenSingle& a, const OpenSingle& b, const OpenSingle& c, const SameDouble& ab,
                         const SameDouble& ac, const SameDouble& bc, OpenTriplesWork& work) {
  const auto o = std::size_t(sizes.o), inner = o + std::size_t(sizes.v), pairs = o * (o - 1) / 2;
  work.w.resize(o * pairs);
  work.v.resize(o * pairs);
  double* const w = work.w.data();
  product(blas, o, pairs, inner, 1, bc.integrals, a.same, false, w);
  product(blas, o, pairs, inner, -1, ac.integrals, b.same, true, w);
  product(blas, o, pairs, inner, 1, ab.integrals, c.same, true, w);
  // With the disconnected part.
  double* const both = work.v.data();
  for (std::size_t i = 0; i < o; ++i) {
    double* const row = both + i * pairs;
    for (std::size_t n = 0; n < pairs; ++n) row[n] = w[i * pairs + n];
    add_both(pairs, a.t1[i], bc.exchange, a.fock[i], bc.amplitudes, row);
    add_both(pairs, -b.t1[i], ac.exchange, -b.fock[i], ac.amplitudes, row);
    add_both(pairs, c.t1[i], ab.exchange, c.fock[i], ab.amplitudes, row);
  }
  const double above = a.energy + b.energy + c.energy;
  double sum = 0;
  for (std::size_t i = 2; i < o; ++i)
    for (std::size_t j = 1; j < i; ++j) {
      const std::size_t ij = pair(i, j);
      double row = 0;
      for (std::size_t k = 0; k < j; ++k) {
        const std::size_t x = i * pairs + pair(j, k), y = j * pairs + pair(i, k), z = k * pairs + ij;
        row += (w[x] - w[y] + w[z]) * (both[x] - both[y] + both[z]) /
               (energies[i] + energies[j] + energies[k] - above);
      }
      sum += row;
    }
  return sum;
}

double mixed_spin_triples(const Blas& blas, const OpenSizes& sizes, const double* energies,
                          const double* others, const OpenSingle& a, const OpenSingle& b, const OpenSingle& c,
                          const SameDouble& ab, const MixedDouble& ac, const MixedDouble& bc,
                          OpenTriplesWork& work) {
  const auto o = std::size_t(sizes.o), p = std::size_t(sizes.p), pairs = o * (o - 1) / 2, columns = o * p;
  const auto inner = o + std::size_t(sizes.v), other = p + std::size_t(sizes.w);
  work.part.resize(p * pairs);
  work.w.resize(o * columns);
  work.v.resize(p);
  double* const first = work.part.data();  // [k][pairs]
  product(blas, p, pairs, inner, 1, bc.integrals, a.same, false, first);
  product(blas, p, pairs, inner, -1, ac.integrals, b.same, true, first);
  double* const second = work.w.data();  // [i][j][k]; the sum takes [i][j] - [j][i]
  product(blas, o, columns, other, -1, bc.turned, a.other, false, second);
  product(blas, o, columns, other, 1, ac.turned, b.other, true, second);
  product(blas, o, columns, inner, -1, ab.integrals, c.other, true, second);
  double sum = 0;
  for (std::size_t i = 1; i < o; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const std::size_t ij = pair(i, j);
      // The disconnected part.
      double* const v = work.v.data();
      for (std::size_t k = 0; k < p; ++k) v[k] = ab.exchange[ij] * c.t1[k] + ab.amplitudes[ij] * c.fock[k];
      add_both(p, a.t1[i], bc.exchange + j * p, a.fock[i], bc.amplitudes + j * p, v);
      add_both(p, -b.t1[i], ac.exchange + j * p, -b.fock[i], ac.amplitudes + j * p, v);
      add_both(p, -a.t1[j], bc.exchange + i * p, -a.fock[j], bc.amplitudes + i * p, v);
      add_both(p, b.t1[j], ac.exchange + i * p, b.fock[j], ac.amplitudes + i * p, v);
      const double above = a.energy + b.energy + c.energy - energies[i] - energies[j];
      double row = 0;
      for (std::size_t k = 0; k < p; ++k) {
        const double w =
            first[k * pairs + ij] + second[i * columns + j * p + k] - second[j * columns + i * p + k];
        row += w * (w + v[k]) / (others[k] - above);
      }
      sum += row;
    }
  return sum;
}

}  // namespace outcore::chem::cc
