// Permutations of shells by operations of a point group, and the equivalent quartets that follow from them.
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
/// subgroups). Quartets of shells that operations carry into each other are copies. The one with the largest
/// labels stands for all, multiplied by their number (petite list: Dupuis and King, Int. J. Quantum Chem. 11,
/// 613 (1977)). Immutable, shared by all threads.
class OUTCORE_SIBLING ShellGroup {
 public:
  /// `images` [operations][components]: the image of each of libcint's shells, without the identity. Throws
  /// Error(EINVAL) unless they form, with the identity, a group of different permutations of shells of equal
  /// kinds.
  ShellGroup(const Basis& basis, std::span<const int> images);

  /// Number of operations, the identity included.
  [[nodiscard]] int order() const noexcept { return int(images_.size() / shells_) + 1; }

  /// Whether no operation carries the pair i >= j to larger labels, so that it stands for its copies.
  [[nodiscard]] bool stands(int i, int j) const noexcept {
    for (const std::uint16_t* image = images_.data(); image != end(); image += shells_)
      if (pair(image[i], image[j]) > pair(i, j)) return false;
    return true;
  }

  /// The number of copies that the quartet (ij|kl), with i >= j, k >= l and (i, j) >= (k, l), stands for,
  /// itself included; 0: another quartet stands for it.
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
