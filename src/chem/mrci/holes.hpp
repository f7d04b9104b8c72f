// Holes: N-2 electron determinants. A product with the Hamiltonian is a sum over holes: it takes a pair of
// electrons out and puts a pair back.
#pragma once

#include <cstdint>
#include <vector>

#include "chem/mrci/space.hpp"

namespace outcore::chem::mrci {

/// The kind of a pair (one electron of each spin, or two of one spin), and the electrons of the hole in
/// external orbitals, of the first spin and of the second. For pairs of one spin, that spin is the first.
enum class Part : std::uint8_t {
  opposite,              ///< none
  opposite_first,        ///< one of the first spin
  opposite_both,         ///< one of each
  opposite_first_twice,  ///< two of the first
  same,                  ///< none
  same_first,            ///< one of the spin of the pair
  same_second,           ///< one of the other
  same_first_twice,
  same_both,
  same_second_twice,
};
inline constexpr std::size_t part_count = 10;

/// Holes of one part. `swapped`: the first spin is beta. Strings have the internal orbitals of the first and
/// of the second spin.
struct Hole {
  std::uint64_t first, second;
};
struct Holes {
  Part part;
  bool swapped;
  int irrep;  ///< irrep of the pair, for holes without external electrons; else -1
  std::vector<Hole> holes;
};

/// All holes that reach a record of the space (folded: only those that are needed), by part and irrep, with
/// ascending strings.
[[nodiscard]] std::vector<Holes> list_holes(const Space& space);

}  // namespace outcore::chem::mrci
