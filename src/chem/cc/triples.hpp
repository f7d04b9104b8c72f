// The energy of connected triple excitations of closed shells, for one pair of virtual orbitals and several
// third ones.
//
// Raghavachari, Trucks, Pople, Head-Gordon, Chem. Phys. Lett. 157, 479 (1989); Rendell, Lee, Komornicki,
// ibid. 178, 462 (1991).
#pragma once

#include <cstddef>
#include <vector>

#include "base/sibling.hpp"

namespace outcore::chem::cc {

/// dgemm of Fortran with 32-bit integers. Each call should use one thread.
using Gemm = void (*)(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,
                      const double* alpha, const double* a, const int* lda, const double* b, const int* ldb,
                      const double* beta, double* c, const int* ldc);

/// What one virtual orbital x brings: occupied orbitals i, j, k, l and virtual ones d, slowest first.
struct Single {
  const double* amplitudes;  // [d][j][k] of t_jk^dx
  const double* turned;      // [d][k][j] of the same
  const double* integrals;   // [i][j][l] of -(ix|jl)
  const double* t1;          // [i]
  const double* fock;        // [i] of f_ix
  double energy;
};

/// What a pair x, y of virtual orbitals brings.
struct Double {
  const double* integrals;   // [i][d] of (ix|yd)
  const double* turned;      // [i][d] of (iy|xd)
  const double* amplitudes;  // [i][j] of t_ij^xy
  const double* exchange;    // [i][j] of (ix|jy)
};

/// What third orbitals c bring together, as the fastest index.
struct Thirds {
  std::size_t count;
  const double* amplitudes;  // [d][j][k][c] of t_jk^dc
  const double* integrals;   // [l][k][i][c] of -(kc|il)
  const double* t1;          // [k][c]
  const double* fock;        // [k][c]
  const double* energies;    // [c]
};

/// What third orbitals bring together with one virtual orbital x.
struct ThirdDoubles {
  const double* integrals;          // [d][i][c] of (ix|cd)
  const double* turned;             // [d][k][c] of (kc|xd)
  const double* amplitudes;         // [i][l][c] of t_il^xc
  const double* turned_amplitudes;  // [l][i][c] of the same
  const double* exchange;           // [i][k][c] of (ix|kc)
};

/// Room of one thread.
struct TriplesWork {
  std::vector<double> w, part, v;
};

/// The contributions of orbitals a, b and each third one, each product of three counted once; the caller
/// multiplies them by 1 if the three are different, by 1/2 if two of them are the same, by 1/6 if all are.
/// `energies`: of `o` occupied orbitals; `v`: number of virtual ones; `found`: as many as there are third
/// ones.
OUTCORE_SIBLING void triples_energies(Gemm gemm, int o, int v, const double* energies, const Single& a,
                                      const Single& b, const Double& ab, const Thirds& c,
                                      const ThirdDoubles& ac, const ThirdDoubles& bc, TriplesWork& work,
                                      double* found);

}  // namespace outcore::chem::cc
