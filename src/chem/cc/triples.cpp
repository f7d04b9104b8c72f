#include "chem/cc/triples.hpp"

#include <cassert>

#include "chem/cc/triples_kernels.hpp"

namespace outcore::chem::cc {

double triples_energy(const TriplesSizes& sizes, const double* energies, const ThreeVirtuals& of,
                      TriplesWork& work) {
  assert(sizes.padded >= sizes.occupied && sizes.padded % triples_padding == 0);
  const std::size_t elements = sizes.occupied * sizes.occupied * sizes.padded;
  work.w.resize(elements);
  work.v.resize(elements);
  const auto& kernels = triples_kernels();
  kernels.connected(sizes, of, work.w.data());
  kernels.disconnected(sizes, of, work.v.data());
  return kernels.energy(sizes, energies, of.a.energy + of.b.energy + of.c.energy, work.w.data(),
                        work.v.data());
}

}  // namespace outcore::chem::cc
