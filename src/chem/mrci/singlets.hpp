// Determinants with two holes in inactive orbitals and two electrons in external ones. The Hamiltonian
// couples only their singlets of these four electrons to references, because the operators of single and
// double excitations have no spin.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "base/sibling.hpp"
#include "chem/mrci/space.hpp"

namespace outcore::chem::mrci {

/// Groups of records that differ by the spins of these electrons; no record is in two groups. Immutable.
class OUTCORE_SIBLING Singlets {
 public:
  /// The first `inactive` internal orbitals are doubly occupied in all references.
  Singlets(std::shared_ptr<const Space> space, int inactive);

  [[nodiscard]] const Space& space() const noexcept { return *space_; }
  [[nodiscard]] std::int64_t groups() const noexcept { return std::int64_t(groups_.size()); }
  /// Records of groups [first, last), ascending.
  [[nodiscard]] std::vector<std::int64_t> records_of(std::int64_t first, std::int64_t last) const;
  /// Projects these groups onto singlets. Record r begins at offsets[r] of data. Throws std::out_of_range for
  /// a record that is not within data.
  void project(std::int64_t first, std::int64_t last, std::span<double> data,
               std::span<const std::int64_t> offsets) const;

 private:
  struct Group {
    std::uint64_t alpha, beta;  ///< internal strings without electrons in the orbitals of the holes
    int i, j;                   ///< orbitals of the holes, i <= j
    [[nodiscard]] auto key() const noexcept { return std::tuple(alpha, beta, i, j); }
  };
  /// Records of one group, and their signs as functions of the spins of orbitals in ascending order.
  struct Frames {
    Place up, down;               ///< records of `alpha_beta`: the spin of i is alpha, beta
    Place outside_up, inside_up;  ///< both external electrons are alpha, both internal ones
    int irrep;
  };
  [[nodiscard]] Frames frames_of(const Group& group) const;

  std::shared_ptr<const Space> space_;
  std::vector<Group> groups_;
};

}  // namespace outcore::chem::mrci
