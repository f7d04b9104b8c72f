// The inner loop of triples.hpp, compiled for several instruction sets.
#pragma once

#include <cstddef>

#include "base/instruction_sets.hpp"

namespace outcore::chem::cc {

/// Third orbitals c that are best done together: they fill the registers of all instruction sets.
constexpr std::size_t triples_lanes = 8;

/// Connected amplitudes of i, j, k are the sum of elements of four arrays, in which third orbitals c are the
/// fastest index.
struct Connected {
  const double* ijk;  // [i][j][k][c]
  const double* jik;  // [j][i][k][c]
  const double* ikj;  // [i][k][j][c]
  const double* jki;  // [j][k][i][c]
};

/// What disconnected amplitudes are made of; t1, f: singles and Fock elements; g, t: exchange integrals and
/// amplitudes of pairs.
struct Disconnected {
  const double *t1_a, *f_a, *t1_b, *f_b;    // [i]
  const double *g_ab, *t_ab;                // [i][j]
  const double *t1_c, *f_c;                 // [k][c]
  const double *g_ac, *t_ac, *g_bc, *t_bc;  // [i][k][c]
};

struct TriplesKernels {
  /// found[c] = energy of orbitals a, b, c. energies: of o occupied orbitals; above: of a and b together; c:
  /// of `count` third orbitals.
  void (*energies)(std::size_t o, std::size_t count, const double* energies, double above, const double* c,
                   const Connected& w, const Disconnected& v, double* found);
};

OUTCORE_KERNELS(TriplesKernels, triples_kernels);

}  // namespace outcore::chem::cc
