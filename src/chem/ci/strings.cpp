#include "chem/ci/strings.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

namespace outcore::chem::ci {
namespace {

using Binomials = std::array<std::array<std::int64_t, max_orbitals + 1>, max_orbitals + 1>;

constexpr Binomials binomials = [] {
  Binomials table{};
  for (std::size_t n = 0; n <= max_orbitals; ++n) {
    table[n][0] = 1;
    for (std::size_t k = 1; k <= n; ++k) table[n][k] = table[n - 1][k - 1] + table[n - 1][k];
  }
  return table;
}();

std::int64_t place_by_value(std::uint64_t mask) {
  std::int64_t place = 0;
  for (std::size_t electron = 1; mask; mask &= mask - 1, ++electron)
    place += binomials[std::size_t(std::countr_zero(mask))][electron];
  return place;
}

}  // namespace

Orbitals::Orbitals(std::vector<int> irreps, int groups) : irreps_(std::move(irreps)), groups_(groups) {
  if (irreps_.size() > std::size_t(max_orbitals))
    throw std::invalid_argument("strings have at most 64 orbitals, not " + std::to_string(irreps_.size()));
  if (groups != 1 && groups != 2 && groups != 4 && groups != 8)
    throw std::invalid_argument("an abelian group has 1, 2, 4 or 8 irreps, not " + std::to_string(groups));
  for (int irrep : irreps_)
    if (irrep < 0 || irrep >= groups)
      throw std::invalid_argument("irrep " + std::to_string(irrep) + " of an orbital is not in [0, " +
                                  std::to_string(groups) + ")");
  if (!std::is_sorted(irreps_.begin(), irreps_.end()))
    throw std::invalid_argument("orbitals must be sorted by irrep");
  for (int g = 0; g <= max_groups; ++g)
    first_[std::size_t(g)] = int(std::lower_bound(irreps_.begin(), irreps_.end(), g) - irreps_.begin());
}

int Orbitals::irrep_of(std::uint64_t mask) const noexcept {
  int irrep = 0;
  for (; mask; mask &= mask - 1) irrep ^= irreps_[std::size_t(std::countr_zero(mask))];
  return irrep;
}

std::vector<std::uint64_t> strings_by_value(int orbitals, int electrons) {
  if (electrons < 0 || electrons > orbitals) return {};
  const std::int64_t count = binomials[std::size_t(orbitals)][std::size_t(electrons)];
  if (count >= std::int64_t{1} << 31)
    throw std::invalid_argument(std::to_string(electrons) + " electrons in " + std::to_string(orbitals) +
                                " orbitals have " + std::to_string(count) +
                                " strings; the limit is 2147483647");
  std::vector<std::uint64_t> masks;
  masks.reserve(std::size_t(count));
  std::uint64_t mask = electrons == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << electrons) - 1;
  for (std::int64_t i = 0; i < count; ++i) {
    masks.push_back(mask);
    if (i + 1 == count) break;
    // In the lowest run of electrons, the highest electron moves up by one, the others to the bottom.
    const std::uint64_t lowest = mask & -mask, raised = mask + lowest;
    mask = raised | (((raised ^ mask) >> 2) / lowest);
  }
  return masks;
}

Strings::Strings(const Orbitals& orbitals, int electrons)
    : orbitals_(orbitals.count()), electrons_(electrons) {
  const auto groups = std::size_t(orbitals.groups());
  const auto all = strings_by_value(orbitals_, electrons);
  offsets_.assign(groups + 1, 0);
  for (std::uint64_t mask : all) ++offsets_[std::size_t(orbitals.irrep_of(mask)) + 1];
  for (std::size_t g = 0; g < groups; ++g) offsets_[g + 1] += offsets_[g];
  masks_.resize(all.size());
  index_.resize(all.size());
  auto next = offsets_;
  for (std::size_t place = 0; place < all.size(); ++place) {
    const std::int64_t index = next[std::size_t(orbitals.irrep_of(all[place]))]++;
    masks_[std::size_t(index)] = all[place];
    index_[place] = std::int32_t(index);
  }
}

int Strings::irrep(std::int64_t index) const noexcept {
  return int(std::upper_bound(offsets_.begin(), offsets_.end(), index) - offsets_.begin()) - 1;
}

std::int64_t Strings::rank(std::uint64_t mask) const noexcept {
  return index_[std::size_t(place_by_value(mask))];
}

bool Strings::contains(std::uint64_t mask) const noexcept {
  return std::popcount(mask) == electrons_ && (orbitals_ == 64 || mask >> orbitals_ == 0);
}

std::int64_t Strings::first_reached(int irrep, std::uint64_t hole) const {
  const auto first = masks_.begin() + offset(irrep), last = masks_.begin() + offset(irrep + 1);
  return std::partition_point(first, last, [&](std::uint64_t mask) { return (mask & (mask - 1)) < hole; }) -
         masks_.begin();
}

}  // namespace outcore::chem::ci
