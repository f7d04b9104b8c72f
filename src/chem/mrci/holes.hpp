// N-2 electron determinants, through which a product with the Hamiltonian goes: H = sum over holes of
// pairs that are taken out and put back.
#pragma once

#include <cstdint>
#include <vector>

#include "chem/mrci/space.hpp"

namespace outcore::chem::mrci {

/// Which pairs, of an electron of each spin or two of one; and which electrons of the hole are in external
/// orbitals: of the first spin, of the second. `Same` names the spin of the pair first.
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

/// Holes of one part. `swapped`: the first spin is beta. Strings are internal ones, of the first and the
/// second spin.
struct Hole {
  std::uint64_t first, second;
};
struct Holes {
  Part part;
  bool swapped;
  int irrep;  ///< of the pair, for holes without external electrons; else -1
  std::vector<Hole> holes;
};

/// All holes that reach a record of the space, folded only those that are needed: by part and irrep, strings
/// ascending.
[[nodiscard]] std::vector<Holes> list_holes(const Space& space);

}  // namespace outcore::chem::mrci
