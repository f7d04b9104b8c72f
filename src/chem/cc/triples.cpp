#include "chem/cc/triples.hpp"

#include <cassert>

#include "chem/cc/triples_kernels.hpp"

namespace outcore::chem::cc {

double triples_energy(const TriplesSizes& sizes, const double* energies, const ThreeVirtuals& of,
                      TriplesWork& work) {
  assert(sizes.padded >= sizes.occupied && sizes.padded % triples_padding == 0);
  const std::size_t elements = sizes.occupied * sizes.occupied * sizes.padded;
  work.w.resize(elements);
  work.v.resize(elements);
  const auto& kernels = triples_kernels();
  kernels.connected(sizes, of, work.w.data());
  kernels.disconnected(sizes, of, work.v.data());
  return kernels.energy(sizes, energies, of.a.energy + of.b.energy + of.c.energy, work.w.data(),
                        work.v.data());
}

namespace {

/// work.w = Z(w) / D, work.v = V / D, work.by_w; see TriplesKernels.
double make_derivatives(const TriplesSizes& sizes, const double* energies, const ThreeVirtuals& of,
                        TriplesWork& work) {
  assert(sizes.padded >= sizes.occupied && sizes.padded % triples_padding == 0);
  const std::size_t square = sizes.occupied * sizes.occupied;
  work.w.resize(square * sizes.padded);
  work.v.resize(square * sizes.padded);
  work.by_w.resize(square * sizes.occupied);
  const auto& kernels = triples_kernels();
  kernels.connected(sizes, of, work.w.data());
  kernels.disconnected(sizes, of, work.v.data());
  return kernels.derivatives(sizes, energies, of.a.energy + of.b.energy + of.c.energy, work.w.data(),
                             work.v.data(), work.by_w.data());
}

double product(const TriplesSizes& sizes, const std::vector<double>& left, const std::vector<double>& right) {
  double sum = 0;
  const std::size_t rows = sizes.occupied * sizes.occupied;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t k = 0; k < sizes.occupied; ++k)
      sum += left[row * sizes.padded + k] * right[row * sizes.padded + k];
  return sum;
}

/// Adds derivatives by the factors of the disconnected amplitudes: `by` is the derivative by these
/// amplitudes, [i][j][k].
void add_disconnected(const TriplesSizes& sizes, const ThreeVirtuals& of, double factor, const double* by,
                      const TriplesSums& to) {
  const std::size_t o = sizes.occupied, padded = sizes.padded;
  for (std::size_t i = 0; i < o; ++i)
    for (std::size_t j = 0; j < o; ++j) {
      const std::size_t ij = i * padded + j;
      const double* const row = by + (i * o + j) * padded;
      const double *const g_ac = of.ac.exchange + i * padded, *const t_ac = of.ac.amplitudes + i * padded;
      const double *const g_bc = of.bc.exchange + j * padded, *const t_bc = of.bc.amplitudes + j * padded;
      double *const by_ac = to.ac + i * padded, *const by_bc = to.bc + j * padded;
      const double g_ab = factor * of.ab.exchange[ij], t_ab = factor * of.ab.amplitudes[ij];
      const double t1_a = factor * of.a.t1[i], t1_b = factor * of.b.t1[j];
      double by_ab = 0, t1_of_a = 0, t1_of_b = 0, fock_of_a = 0, fock_of_b = 0;
      for (std::size_t k = 0; k < o; ++k) {
        by_ab += row[k] * of.c.t1[k];
        t1_of_a += row[k] * g_bc[k];
        fock_of_a += row[k] * t_bc[k];
        t1_of_b += row[k] * g_ac[k];
        fock_of_b += row[k] * t_ac[k];
        to.c.t1[k] += row[k] * g_ab;
        to.c.fock[k] += row[k] * t_ab;
        by_ac[k] += row[k] * t1_b;
        by_bc[k] += row[k] * t1_a;
      }
      to.ab[ij] += factor * by_ab;
      to.a.t1[i] += factor * t1_of_a;
      to.a.fock[i] += factor * fock_of_a;
      to.b.t1[j] += factor * t1_of_b;
      to.b.fock[j] += factor * fock_of_b;
    }
}

}  // namespace

double triples_derivatives(const TriplesSizes& sizes, const double* energies, const ThreeVirtuals& of,
                           double weight, TriplesWork& work, const TriplesSums& to) {
  const double energy = make_derivatives(sizes, energies, of, work);
  const double factor = 2 * weight;
  add_disconnected(sizes, of, factor, work.w.data(), to);
  const double density = factor * product(sizes, work.w, work.v);
  for (const auto* each : {&to.a, &to.b, &to.c}) *each->density += density;
  for (auto& element : work.v) element *= factor;
  work.left.resize(work.w.size());
  work.right.resize(work.w.size());
  triples_kernels().densities(sizes, work.w.data(), work.v.data(), work, to.occupied);
  return 2 * energy;
}

void triples_density(const TriplesSizes& sizes, const double* energies, bool is_same,
                     const std::vector<ThreeVirtuals>& of, std::vector<TriplesWork>& work, double* density) {
  const std::size_t count = of.size();
  assert(work.size() >= count);
  for (std::size_t a = 0; a < count; ++a) (void)make_derivatives(sizes, energies, of[a], work[a]);
  for (std::size_t m = 0; m < count; ++m)
    for (std::size_t n = 0; n < count; ++n)
      density[m * count + n] += (is_same ? 1 : 2) * product(sizes, work[m].w, work[n].v);
}

}  // namespace outcore::chem::cc
