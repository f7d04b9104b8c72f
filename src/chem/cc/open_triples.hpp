// The energy of connected triple excitations of open shells, for three virtual orbitals: of one spin, or two
// of one spin and one of the other.
//
// There are o occupied and v virtual orbitals of the first spin, p and w of the other. Indices i, j, l, a, b,
// d belong to the first spin; if there are two spins, k, L, c, D belong to the other. Pairs are i > j of one
// spin, in the order 10, 20, 21, 30, ... Orbitals are semicanonical; Fock elements between occupied and
// virtual orbitals contribute.
//
// Watts, Gauss, Bartlett, J. Chem. Phys. 98, 8718 (1993).
#pragma once

#include <vector>

#include "base/blas.hpp"
#include "base/sibling.hpp"

namespace outcore::chem::cc {

/// The arrays of one virtual orbital x; the slowest index comes first.
struct OpenSingle {
  const double* same;  // [v+o][pairs] of t_ij^xd, then of (li|jx) - (lj|ix). Of c: see `other`
  const double*
      other;  // [w+p][o][p] of t_ik^xD, then of (Lk|ix). Of c: [v+o][o][p] of t_ik^dx, then of -(li|kx)
  const double* t1;    // of the occupied orbitals of its spin
  const double* fock;  // [i] of f_ix
  double energy;
};

/// The arrays of two virtual orbitals x, y of one spin.
struct SameDouble {
  const double* integrals;   // [i][v+o] of (iy|xd) - (ix|yd), then of -t_il^xy
  const double* exchange;    // [pairs] of (ix|jy) - (iy|jx)
  const double* amplitudes;  // [pairs] of t_ij^xy
};

/// The arrays of a virtual orbital x of the first spin and one z of the other.
struct MixedDouble {
  const double* integrals;   // [k][v+o] of (xd|kz), then of t_lk^xz
  const double* turned;      // [i][w+p] of (ix|zD), then of -t_iL^xz
  const double* exchange;    // [i][k] of (ix|kz)
  const double* amplitudes;  // [i][k] of t_ik^xz
};

/// Numbers of orbitals of the first spin and of the other.
struct OpenSizes {
  int o, v, p, w;
};

/// Work space of one thread.
struct OpenTriplesWork {
  std::vector<double> w, part, v;
};

/// The energy (Hartree) of orbitals a, b, c of one spin, which differ; each set of three counts once. `other`
/// is not used.
[[nodiscard]] OUTCORE_SIBLING double same_spin_triples(const Blas& blas, const OpenSizes& sizes,
                                                       const double* energies, const OpenSingle& a,
                                                       const OpenSingle& b, const OpenSingle& c,
                                                       const SameDouble& ab, const SameDouble& ac,
                                                       const SameDouble& bc, OpenTriplesWork& work);

/// The energy (Hartree) of orbitals a, b of the first spin, which differ, and c of the other; each pair with
/// each c counts once. `energies`, `others`: of the occupied orbitals of the first spin and of the other.
/// `same` of c is not used.
[[nodiscard]] OUTCORE_SIBLING double mixed_spin_triples(const Blas& blas, const OpenSizes& sizes,
                                                        const double* energies, const double* others,
                                                        const OpenSingle& a, const OpenSingle& b,
                                                        const OpenSingle& c, const SameDouble& ab,
                                                        const MixedDouble& ac, const MixedDouble& bc,
                                                        OpenTriplesWork& work);

}  // namespace outcore::chem::cc
