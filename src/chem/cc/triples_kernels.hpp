// The inner loops of triples.hpp, compiled for several instruction sets.
#pragma once

#include <cstddef>

#include "base/instruction_sets.hpp"
#include "chem/cc/triples.hpp"

namespace outcore::chem::cc {

struct TriplesKernels {
  /// w[i][j][k] = connected amplitudes of orbitals a, b, c, times the denominator: six products of matrices
  /// of (ix|yd) and t_jk^dz, less six of (ix|jl) and t_kl^zy.
  void (*connected)(const TriplesSizes& sizes, const ThreeVirtuals& of, double* w);
  /// v[i][j][k] = the disconnected ones.
  void (*disconnected)(const TriplesSizes& sizes, const ThreeVirtuals& of, double* v);
  /// The energy of both (Hartree). energies: of occupied orbitals; above: of a, b and c together.
  double (*energy)(const TriplesSizes& sizes, const double* energies, double above, const double* w,
                   const double* v);
  /// With Z(x)[ijk] = 4 x[ijk] + x[jki] + x[kij] - 2 (x[kji] + x[jik] + x[ikj]), V = w + v and the gaps D:
  /// w becomes Z(w) / D, v becomes V / D, and `by_w` [i][j][k], whose rows have no room for more, is
  /// 2 Z(w + V) / D. Returns sum Z(w) V / D.
  double (*derivatives)(const TriplesSizes& sizes, const double* energies, double above, double* w, double* v,
                        double* by_w);
  /// oo[m][n] += sums of left and right over all pairs of indices beside m and n, which are in the first, the
  /// second and the third place. left and right are as w; rows of oo have `padded` elements.
  void (*densities)(const TriplesSizes& sizes, const double* left, const double* right, TriplesWork& work,
                    double* oo);
};

OUTCORE_KERNELS(TriplesKernels, triples_kernels);

}  // namespace outcore::chem::cc
