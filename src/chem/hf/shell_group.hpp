// Which shells operations of a point group carry into which, and so which quartets of shells are alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/sibling.hpp"
#include "chem/common/basis.hpp"

namespace outcore::chem {

/// A group of permutations of shells, by operations that commute and are their own inverses (of D2h and its
/// subgroups). Quartets of shells that operations carry into each other are copies; one of them, of which the
/// labels are the largest, stands for all, as many times as there are (petite list: Dupuis and King, Int. J.
/// Quantum Chem. 11, 613 (1977)). Immutable, shared by all threads.
class OUTCORE_SIBLING ShellGroup {
 public:
  /// `images` [operations][components]: by libcint's shells, the identity not among them. Throws
  /// Error(EINVAL) unless they are, with it, a group of so many different permutations of shells of equal
  /// kinds.
  ShellGroup(const Basis& basis, std::span<const int> images);

  /// Operations, the identity included.
  [[nodiscard]] int order() const noexcept { return int(images_.size() / shells_) + 1; }

  /// No operation carries the pair i >= j to larger labels: it stands for its copies.
  [[nodiscard]] bool stands(int i, int j) const noexcept {
    for (const std::uint16_t* image = images_.data(); image != end(); image += shells_)
      if (pair(image[i], image[j]) > pair(i, j)) return false;
    return true;
  }

  /// How many copies the quartet (ij|kl), with i >= j, k >= l and (i, j) >= (k, l), stands for, itself
  /// included; 0: another one stands for it.
  [[nodiscard]] int copies(int i, int j, int k, int l) const noexcept {
    const auto bra = pair(i, j), ket = pair(k, l);
    int fixing = 1;
    for (const std::uint16_t* image = images_.data(); image != end(); image += shells_) {
      auto larger = pair(image[i], image[j]), smaller = pair(image[k], image[l]);
      if (larger < smaller) std::swap(larger, smaller);
      if (larger > bra || (larger == bra && smaller > ket)) return 0;
      fixing += larger == bra && smaller == ket;
    }
    return order() / fixing;
  }

 private:
  [[nodiscard]] static std::uint32_t pair(int p, int q) noexcept {
    return p > q ? std::uint32_t(p) << 16 | std::uint32_t(q) : std::uint32_t(q) << 16 | std::uint32_t(p);
  }
  [[nodiscard]] const std::uint16_t* end() const noexcept { return images_.data() + images_.size(); }
  void check_group() const;

  std::size_t shells_;
  std::vector<std::uint16_t> images_;  // [operations][shells]
};

}  // namespace outcore::chem
