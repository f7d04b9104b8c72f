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

/// What one virtual orbital x brings: occupied orbitals i, j, l and virtual ones d, slowest first.
struct Single {
  const double* amplitudes;  // [d][j][k] of t_jk^dx
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

/// Room of one thread.
struct TriplesWork {
  std::vector<double> w, part, v, turned;
};

/// The contribution of orbitals a, b and c, each product of three counted once; the caller multiplies it by 1
/// if they are different, by 1/2 if two of them are the same, by 1/6 if all are. `energies`: of `o` occupied
/// orbitals; `v`: number of virtual ones.
[[nodiscard]] OUTCORE_SIBLING double triples_energy(Gemm gemm, int o, int v, const double* energies,
                                                    const Single& a, const Single& b, const Single& c,
                                                    const Double& ab, const Double& ac, const Double& bc,
                                                    TriplesWork& work);

}  // namespace outcore::chem::cc
