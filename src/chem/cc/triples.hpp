// The energy of connected triple excitations of closed shells, for three virtual orbitals.
//
// Raghavachari, Trucks, Pople, Head-Gordon, Chem. Phys. Lett. 157, 479 (1989); Rendell, Lee, Komornicki,
// ibid. 178, 462 (1991).
#pragma once

#include <cstddef>
#include <vector>

#include "base/sibling.hpp"

namespace outcore::chem::cc {

/// The last index of an array, an occupied orbital, has room for a multiple of so many.
constexpr std::size_t triples_padding = 4;

struct TriplesSizes {
  std::size_t occupied, padded, virtuals;
};

/// What one virtual orbital x brings: occupied orbitals i, j, k, l and virtual ones d, slowest first. Here
/// and below the last index of arrays with two and more has room for `padded`, of which numbers follow the
/// occupied ones: they are finite, and have no meaning.
struct Single {
  const double* amplitudes;        // [j][d][k] of t_jk^dx
  const double* turned;            // [k][d][j] of the same
  const double* integrals;         // [i][l][k] of -(ix|lk)
  const double* turned_integrals;  // [l][k][i] of the same
  const double* t1;                // [i]
  const double* fock;              // [i] of f_ix
  double energy;
};

/// What a pair x, y of virtual orbitals brings.
struct Double {
  const double* integrals;          // [d][i] of (ix|yd)
  const double* turned;             // [d][i] of (iy|xd)
  const double* amplitudes;         // [i][j] of t_ij^xy
  const double* turned_amplitudes;  // [j][i] of the same
  const double* exchange;           // [i][j] of (ix|jy)
};

struct ThreeVirtuals {
  Single a, b, c;
  Double ab, ac, bc;
};

/// Room of one thread.
struct TriplesWork {
  std::vector<double> w, v;
};

/// The contribution of orbitals a, b and c (Hartree), each product of three counted once; the caller
/// multiplies it by 1 if they are different, by 1/2 if two of them are the same, by 1/6 if all are.
/// `energies`: of occupied orbitals.
[[nodiscard]] OUTCORE_SIBLING double triples_energy(const TriplesSizes& sizes, const double* energies,
                                                    const ThreeVirtuals& of, TriplesWork& work);

}  // namespace outcore::chem::cc
