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
/// and below the last index of arrays with two and more has room for `padded` numbers. Those after the
/// occupied ones are finite and have no meaning.
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
  std::vector<double> left, right, by_w;  // of derivatives alone
};

/// The contribution of orbitals a, b and c (Hartree), each product of three counted once; the caller
/// multiplies it by 1 if they are different, by 1/2 if two of them are the same, by 1/6 if all are.
/// `energies`: of occupied orbitals.
[[nodiscard]] OUTCORE_SIBLING double triples_energy(const TriplesSizes& sizes, const double* energies,
                                                    const ThreeVirtuals& of, TriplesWork& work);

/// What derivatives of the energy by what one virtual orbital brings are added to: by t1 and Fock elements,
/// [i], and a diagonal element of the density.
struct SingleSums {
  double *t1, *fock, *density;
};

/// The same of what has one place for all. By the Fock matrix of occupied orbitals, without its sign, [i][j];
/// by (ix|jy) of each pair, [i][j]. All rows have `padded` elements.
struct TriplesSums {
  double* occupied;
  SingleSums a, b, c;
  double *ab, *ac, *bc;
};

/// The energy as `triples_energy` has it, and derivatives of it with this weight, which is 1, 1/2 or 1/6,
/// added to `to`. work.by_w is the derivative by the connected amplitudes [i][j][k] times the denominator, of
/// each of the orders of a, b and c, before the six of them are summed; it has no weight.
///
/// The Fock matrix acts on triples with all its elements: derivatives by those that are zero are densities
/// too. Of virtual orbitals there are diagonal ones alone.
[[nodiscard]] OUTCORE_SIBLING double triples_derivatives(const TriplesSizes& sizes, const double* energies,
                                                         const ThreeVirtuals& of, double weight,
                                                         TriplesWork& work, const TriplesSums& to);

/// Adds to density[m][n] the element of orbitals a[m] and a[n], as two orbitals b and c make it, in both
/// orders if they are different. of_a, of_ab, of_ac: of each a. work: as many as there are orbitals a.
OUTCORE_SIBLING void triples_density(const TriplesSizes& sizes, const double* energies, bool is_same,
                                     const std::vector<ThreeVirtuals>& of, std::vector<TriplesWork>& work,
                                     double* density);

}  // namespace outcore::chem::cc
