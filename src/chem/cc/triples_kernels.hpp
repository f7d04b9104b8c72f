// The inner loops of triples.hpp, compiled for several instruction sets.
#pragma once

#include <cstddef>

#include "base/instruction_sets.hpp"
#include "chem/cc/triples.hpp"

namespace outcore::chem::cc {

struct TriplesKernels {
  /// w[i][j][k] = connected amplitudes of orbitals a, b, c, times the denominator: six matrix products of
  /// (ix|yd) and t_jk^dz, minus six of (ix|jl) and t_kl^zy.
  void (*connected)(const TriplesSizes& sizes, const ThreeVirtuals& of, double* w);
  /// v[i][j][k] = disconnected amplitudes, times the denominator.
  void (*disconnected)(const TriplesSizes& sizes, const ThreeVirtuals& of, double* v);
  /// The energy of w and v (Hartree). energies: of occupied orbitals; above: the sum of those of a, b and c.
  double (*energy)(const TriplesSizes& sizes, const double* energies, double above, const double* w,
                   const double* v);
  /// With Z(x)[ijk] = 4 x[ijk] + x[jki] + x[kij] - 2 (x[kji] + x[jik] + x[ikj]), V = w + v and the gaps D: w
  /// becomes Z(w) / D, v becomes V / D, and `by_w` [i][j][k], whose rows are not padded, becomes 2 Z(w + V) /
  /// D. Returns sum Z(w) V / D.
  double (*derivatives)(const TriplesSizes& sizes, const double* energies, double above, double* w, double* v,
                        double* by_w);
  /// oo[m][n] += products of left and right, summed over the two other indices, with m and n in the first,
  /// the second and the third place. left and right are laid out as w; rows of oo have `padded` elements.
  void (*densities)(const TriplesSizes& sizes, const double* left, const double* right, TriplesWork& work,
                    double* oo);
};

OUTCORE_KERNELS(TriplesKernels, triples_kernels);

}  // namespace outcore::chem::cc
