// The energy of connected triple excitations of closed shells, for three virtual orbitals.
//
// Raghavachari, Trucks, Pople, Head-Gordon, Chem. Phys. Lett. 157, 479 (1989); Rendell, Lee, Komornicki,
// ibid. 178, 462 (1991).
#pragma once

#include <cstddef>
#include <vector>

#include "base/sibling.hpp"

namespace outcore::chem::cc {

/// The last index of an array, an occupied orbital, is padded to a multiple of this number.
constexpr std::size_t triples_padding = 4;

struct TriplesSizes {
  std::size_t occupied, padded, virtuals;
};

/// The arrays of one virtual orbital x, with occupied orbitals i, j, k, l and virtual ones d; the slowest
/// index comes first. Here and below, arrays with two or more indices have room for `padded` numbers along
/// the last one. The numbers after those of the occupied orbitals are finite and have no meaning.
struct Single {
  const double* amplitudes;        // [j][d][k] of t_jk^dx
  const double* turned;            // [k][d][j] of the same
  const double* integrals;         // [i][l][k] of -(ix|lk)
  const double* turned_integrals;  // [l][k][i] of the same
  const double* t1;                // [i]
  const double* fock;              // [i] of f_ix
  double energy;
};

/// The arrays of a pair x, y of virtual orbitals.
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

/// Work space of one thread.
struct TriplesWork {
  std::vector<double> w, v;
  std::vector<double> left, right, by_w;  // for derivatives only
};

/// The energy contribution of orbitals a, b and c (Hartree). The caller multiplies it by 1 if they are
/// different, by 1/2 if two of them are the same, by 1/6 if all are. `energies`: of occupied orbitals.
[[nodiscard]] OUTCORE_SIBLING double triples_energy(const TriplesSizes& sizes, const double* energies,
                                                    const ThreeVirtuals& of, TriplesWork& work);

/// Sums of derivatives of the energy by the arrays of one virtual orbital: by t1 and Fock elements, [i], and
/// a diagonal element of the density.
struct SingleSums {
  double *t1, *fock, *density;
};

/// All sums of derivatives: those of single orbitals; by the Fock matrix of occupied orbitals, without its
/// sign, [i][j]; by (ix|jy) of each pair, [i][j]. All rows have `padded` elements.
struct TriplesSums {
  double* occupied;
  SingleSums a, b, c;
  double *ab, *ac, *bc;
};

/// Returns the energy as `triples_energy` does, and adds its derivatives, times `weight` (1, 1/2 or 1/6), to
/// `to`. work.by_w receives the derivative by the connected amplitudes [i][j][k] times the denominator, for a
/// single order of a, b and c, before the six orders are summed; it has no weight.
///
/// The Fock matrix acts on triples with all its elements, so derivatives by elements that are zero are
/// densities, too. For virtual orbitals only diagonal elements are computed.
[[nodiscard]] OUTCORE_SIBLING double triples_derivatives(const TriplesSizes& sizes, const double* energies,
                                                         const ThreeVirtuals& of, double weight,
                                                         TriplesWork& work, const TriplesSums& to);

/// Adds to density[m][n], the element of orbitals a[m] and a[n], the contribution of two orbitals b and c, in
/// both orders if they differ. of_a, of_ab, of_ac: one for each a. work: one for each orbital a.
OUTCORE_SIBLING void triples_density(const TriplesSizes& sizes, const double* energies, bool is_same,
                                     const std::vector<ThreeVirtuals>& of, std::vector<TriplesWork>& work,
                                     double* density);

}  // namespace outcore::chem::cc
