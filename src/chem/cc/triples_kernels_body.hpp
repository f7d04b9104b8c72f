// Body of the kernel, for one instruction set: see base/instruction_sets.hpp, also for what may not be used.

#include "chem/cc/triples_kernels.hpp"

namespace outcore::chem::cc {
namespace {

/// Adds what orbitals i >= j >= k bring to `found`. lanes: third orbitals, if their number is known
/// beforehand.
template <std::size_t lanes>
void add_orbitals(std::size_t o, std::size_t count, std::size_t i, std::size_t j, std::size_t k, double below,
                  const double* c, const Connected& w, const Disconnected& v, double* found) {
  const std::size_t n = lanes ? lanes : count;
  // ijk, jki, kij, ikj, jik, kji
  const std::size_t orders[6][3] = {{i, j, k}, {j, k, i}, {k, i, j}, {i, k, j}, {j, i, k}, {k, j, i}};
  double connected[6][triples_lanes], both[6][triples_lanes];
  for (std::size_t order = 0; order < 6; ++order) {
    const std::size_t x = orders[order][0], y = orders[order][1], z = orders[order][2];
    const double* const ijk = w.ijk + ((x * o + y) * o + z) * n;
    const double* const jik = w.jik + ((y * o + x) * o + z) * n;
    const double* const ikj = w.ikj + ((x * o + z) * o + y) * n;
    const double* const jki = w.jki + ((y * o + z) * o + x) * n;
    const double g_ab = v.g_ab[x * o + y], t_ab = v.t_ab[x * o + y];
    const double t1_a = v.t1_a[x], f_a = v.f_a[x], t1_b = v.t1_b[y], f_b = v.f_b[y];
    const double *const t1_c = v.t1_c + z * n, *const f_c = v.f_c + z * n;
    const double *const g_ac = v.g_ac + (x * o + z) * n, *const t_ac = v.t_ac + (x * o + z) * n;
    const double *const g_bc = v.g_bc + (y * o + z) * n, *const t_bc = v.t_bc + (y * o + z) * n;
    for (std::size_t each = 0; each < n; ++each) {
      const double sum = ijk[each] + jik[each] + ikj[each] + jki[each];
      connected[order][each] = sum;
      both[order][each] = sum + g_ab * t1_c[each] + t_ab * f_c[each] + g_ac[each] * t1_b + t_ac[each] * f_b +
                          g_bc[each] * t1_a + t_bc[each] * f_a;
    }
  }
  const double same = i == j || j == k ? 0.5 : 1.0;
  for (std::size_t each = 0; each < n; ++each) {
    const double even = connected[0][each] + connected[1][each] + connected[2][each];
    const double odd = connected[3][each] + connected[4][each] + connected[5][each];
    double sum = 0;
    for (std::size_t p = 0; p < 3; ++p) {
      sum += both[p][each] * (3 * connected[p][each] + even - 2 * odd);
      sum += both[p + 3][each] * (3 * connected[p + 3][each] + odd - 2 * even);
    }
    found[each] += 2 * same * sum / (below - c[each]);
  }
}

template <std::size_t lanes>
void all_orbitals(std::size_t o, std::size_t count, const double* energies, double above, const double* c,
                  const Connected& w, const Disconnected& v, double* found) {
  for (std::size_t each = 0; each < count; ++each) found[each] = 0;
  for (std::size_t i = 0; i < o; ++i)
    for (std::size_t j = 0; j <= i; ++j)
      for (std::size_t k = 0; k <= j; ++k)
        if (i != k)  // three equal orbitals bring nothing
          add_orbitals<lanes>(o, count, i, j, k, energies[i] + energies[j] + energies[k] - above, c, w, v,
                              found);
}

void sum_energies(std::size_t o, std::size_t count, const double* energies, double above, const double* c,
                  const Connected& w, const Disconnected& v, double* found) {
  if (count == triples_lanes)
    all_orbitals<triples_lanes>(o, count, energies, above, c, w, v, found);
  else
    all_orbitals<0>(o, count, energies, above, c, w, v, found);
}

}  // namespace

const TriplesKernels OUTCORE_VARIANT(triples_kernels) = {sum_energies};

}  // namespace outcore::chem::cc
