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
};

OUTCORE_KERNELS(TriplesKernels, triples_kernels);

}  // namespace outcore::chem::cc
