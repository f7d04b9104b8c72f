// Strings: which orbitals the electrons of one spin occupy, as bits of a 64-bit mask.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/sibling.hpp"
#include "chem/common/masks.hpp"

namespace outcore::chem::ci {

inline constexpr int max_orbitals = 64;
inline constexpr int max_groups = 8;

/// Orbitals sorted by irrep. Irreps are numbers whose product is their exclusive or.
class OUTCORE_SIBLING Orbitals {
 public:
  /// Throws std::invalid_argument if there are more than 64 orbitals, if `groups` is not 1, 2, 4 or 8, or if
  /// the irreps are not sorted or not in [0, groups).
  Orbitals(std::vector<int> irreps, int groups);

  [[nodiscard]] int count() const noexcept { return int(irreps_.size()); }
  [[nodiscard]] int groups() const noexcept { return groups_; }
  [[nodiscard]] int irrep(int orbital) const noexcept { return irreps_[std::size_t(orbital)]; }
  /// The orbitals of an irrep are first(irrep), ..., first(irrep) + count(irrep) - 1.
  [[nodiscard]] int first(int irrep) const noexcept { return first_[std::size_t(irrep)]; }
  [[nodiscard]] int count(int irrep) const noexcept { return first(irrep + 1) - first(irrep); }
  [[nodiscard]] int irrep_of(std::uint64_t mask) const noexcept;

 private:
  std::vector<int> irreps_;
  int groups_;
  std::array<int, max_groups + 1> first_{};
};

/// Strings of `electrons` electrons, by value: the highest orbital counts most. None if `electrons` is
/// negative or more than there are orbitals. Throws std::invalid_argument from 2^31 strings on.
[[nodiscard]] std::vector<std::uint64_t> strings_by_value(int orbitals, int electrons);

/// All strings of one spin, sorted by irrep, then by value. The place in this list is the index of a string;
/// the strings of one irrep are a sector.
class OUTCORE_SIBLING Strings {
 public:
  Strings(const Orbitals& orbitals, int electrons);

  [[nodiscard]] int electrons() const noexcept { return electrons_; }
  [[nodiscard]] std::int64_t count() const noexcept { return std::int64_t(masks_.size()); }
  [[nodiscard]] std::span<const std::uint64_t> masks() const noexcept { return masks_; }
  [[nodiscard]] std::uint64_t mask(std::int64_t index) const noexcept { return masks_[std::size_t(index)]; }
  /// A sector has the indices [offset(irrep), offset(irrep + 1)).
  [[nodiscard]] std::span<const std::int64_t> offsets() const noexcept { return offsets_; }
  [[nodiscard]] std::int64_t offset(int irrep) const noexcept { return offsets_[std::size_t(irrep)]; }
  [[nodiscard]] std::int64_t count(int irrep) const noexcept { return offset(irrep + 1) - offset(irrep); }
  [[nodiscard]] int irrep(std::int64_t index) const noexcept;
  /// The index of a string that is in the list.
  [[nodiscard]] std::int64_t rank(std::uint64_t mask) const noexcept;
  /// Whether a mask has the right number of electrons, in these orbitals.
  [[nodiscard]] bool contains(std::uint64_t mask) const noexcept;

  /// The first string of a sector that is at least `hole` after removal of its lowest electron, or the
  /// sector's end. Exactly this string and those after it contain an N-1 electron string of at least the
  /// value `hole`.
  [[nodiscard]] std::int64_t first_reached(int irrep, std::uint64_t hole) const;

 private:
  int orbitals_, electrons_;
  std::vector<std::uint64_t> masks_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int32_t> index_;  // by place in the list by value
};

/// Whether strings of the indices first, ..., first + count - 1 exist; accepts any numbers.
[[nodiscard]] inline bool has(const Strings& strings, std::int64_t first, std::int64_t count) noexcept {
  return first >= 0 && first <= strings.count() && count <= strings.count() - first;
}

}  // namespace outcore::chem::ci
