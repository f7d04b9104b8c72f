// The energy of connected triple excitations of open shells, for three virtual orbitals: of one spin, or two
// of one spin and one of the other.
//
// o occupied and v virtual orbitals have the first spin, p and w the other one; i, j, l, a, b, d are of the
// first, k, L, c, D of the other where there are two. Pairs are i > j of one spin, in the order 10, 20, 21,
// 30, ... Semicanonical orbitals; elements of the Fock matrix between occupied and virtual ones count.
//
// Watts, Gauss, Bartlett, J. Chem. Phys. 98, 8718 (1993).
#pragma once

#include <vector>

#include "base/blas.hpp"
#include "base/sibling.hpp"

namespace outcore::chem::cc {

/// What one virtual orbital x brings; slowest first.
struct OpenSingle {
  const double* same;  // [v+o][pairs] of t_ij^xd, then of (li|jx) - (lj|ix). Of c: see `other`
  const double*
      other;  // [w+p][o][p] of t_ik^xD, then of (Lk|ix). Of c: [v+o][o][p] of t_ik^dx, then of -(li|kx)
  const double* t1;    // of its occupied orbitals
  const double* fock;  // [i] of f_ix
  double energy;
};

/// What two virtual orbitals x, y of one spin bring.
struct SameDouble {
  const double* integrals;   // [i][v+o] of (iy|xd) - (ix|yd), then of -t_il^xy
  const double* exchange;    // [pairs] of (ix|jy) - (iy|jx)
  const double* amplitudes;  // [pairs] of t_ij^xy
};

/// What a virtual orbital x of the first spin and one z of the other bring.
struct MixedDouble {
  const double* integrals;   // [k][v+o] of (xd|kz), then of t_lk^xz
  const double* turned;      // [i][w+p] of (ix|zD), then of -t_iL^xz
  const double* exchange;    // [i][k] of (ix|kz)
  const double* amplitudes;  // [i][k] of t_ik^xz
};

/// Numbers of orbitals of the first and of the other spin.
struct OpenSizes {
  int o, v, p, w;
};

/// Room of one thread.
struct OpenTriplesWork {
  std::vector<double> w, part, v;
};

/// Orbitals a, b, c of one spin, which differ; each product of three counts once. `other` is not used.
[[nodiscard]] OUTCORE_SIBLING double same_spin_triples(const Blas& blas, const OpenSizes& sizes,
                                                       const double* energies, const OpenSingle& a,
                                                       const OpenSingle& b, const OpenSingle& c,
                                                       const SameDouble& ab, const SameDouble& ac,
                                                       const SameDouble& bc, OpenTriplesWork& work);

/// Orbitals a, b of the first spin, which differ, and c of the other; each product of two and one counts
/// once. `energies`, `others`: of occupied orbitals of the first and of the other spin. `same` of c is not
/// used.
[[nodiscard]] OUTCORE_SIBLING double mixed_spin_triples(const Blas& blas, const OpenSizes& sizes,
                                                        const double* energies, const double* others,
                                                        const OpenSingle& a, const OpenSingle& b,
                                                        const OpenSingle& c, const SameDouble& ab,
                                                        const MixedDouble& ac, const MixedDouble& bc,
                                                        OpenTriplesWork& work);

}  // namespace outcore::chem::cc
