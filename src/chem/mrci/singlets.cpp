#include "chem/mrci/singlets.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <tuple>

#include "chem/common/masks.hpp"

namespace outcore::chem::mrci {
namespace {

/// The sign of a determinant with alpha before beta electrons, relative to one with ascending orbitals.
double sign_of(std::uint64_t alpha, std::uint64_t beta) noexcept {
  int exchanges = 0;
  for (std::uint64_t left = alpha; left != 0; left &= left - 1)
    exchanges += std::popcount(beta & ((left & -left) - 1));
  return exchanges & 1 ? -1 : 1;
}

constexpr double third = 1 / (2 * std::numbers::sqrt3);

}  // namespace

Singlets::Singlets(std::shared_ptr<const Space> space, int inactive) : space_(std::move(space)) {
  if (inactive < 0 || inactive > space_->internals()) throw std::invalid_argument("inactive orbitals");
  const std::uint64_t core = (std::uint64_t{1} << inactive) - 1;
  for (const Record& each : space_->records()) {
    const auto outside = electrons_of(each.kind);
    const std::uint64_t once = (each.alpha ^ each.beta) & core, never = core & ~(each.alpha | each.beta);
    if (outside[0] + outside[1] != 2 || std::popcount(once) + 2 * std::popcount(never) != 2) continue;
    Group found{each.alpha & ~once, each.beta & ~once, 0, 0};
    const std::uint64_t holes = once | never;
    found.i = std::countr_zero(holes);
    found.j = std::bit_width(holes) - 1;
    if (space_->parity() != 0 && found.alpha < found.beta) std::swap(found.alpha, found.beta);
    groups_.push_back(found);
  }
  const auto less = [](const Group& a, const Group& b) { return a.key() < b.key(); };
  std::sort(groups_.begin(), groups_.end(), less);
  groups_.erase(std::unique(groups_.begin(), groups_.end(),
                            [](const Group& a, const Group& b) { return a.key() == b.key(); }),
                groups_.end());
}

Singlets::Frames Singlets::frames_of(const Group& group) const {
  const auto& [alpha, beta, i, j] = group;
  const auto find = [&](External kind, std::uint64_t a, std::uint64_t b) {
    Place found = space_->locate(kind, a, b);
    found.sign *= sign_of(a, b);
    // An external alpha electron stands behind the internal beta electrons; if c and d have one spin, c
    // stands behind d.
    if (kind == External::alpha_beta ? std::popcount(b) & 1 : 1) found.sign = -found.sign;
    return found;
  };
  Frames found{};
  const Place none{-1, false, 0};
  if (i == j)
    found = {find(External::alpha_beta, alpha, beta), none, none, none, 0};
  else
    found = {find(External::alpha_beta, with(alpha, i), with(beta, j)),
             find(External::alpha_beta, with(alpha, j), with(beta, i)),
             find(External::alpha_alpha, alpha, with(with(beta, i), j)),
             find(External::beta_beta, with(with(alpha, i), j), beta), 0};
  for (const Place& each : {found.up, found.down, found.outside_up, found.inside_up})
    if (each.record >= 0) found.irrep = space_->record(each.record).irrep;
  return found;
}

std::vector<std::int64_t> Singlets::records_of(std::int64_t first, std::int64_t last) const {
  std::vector<std::int64_t> found;
  for (std::int64_t g = first; g < last; ++g) {
    const Frames frames = frames_of(groups_.at(std::size_t(g)));
    for (const Place& each : {frames.up, frames.down, frames.outside_up, frames.inside_up})
      if (each.record >= 0) found.push_back(each.record);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

void Singlets::project(std::int64_t first, std::int64_t last, std::span<double> data,
                       std::span<const std::int64_t> offsets) const {
  const Externals& externals = space_->externals();
  double zero = 0;
  const auto begin_of = [&](const Place& place) -> double* {
    if (place.record < 0) return nullptr;
    const std::int64_t at = offsets[std::size_t(place.record)];
    if (at < 0 || at + space_->record(place.record).size > std::int64_t(data.size()))
      throw std::out_of_range("a record of a group is not there");
    return data.data() + at;
  };
  for (std::int64_t number = first; number < last; ++number) {
    const Group& group = groups_.at(std::size_t(number));
    const Frames f = frames_of(group);
    double *const up = begin_of(f.up), *const down = begin_of(f.down),
                  *const outside_up = begin_of(f.outside_up), *const inside_up = begin_of(f.inside_up);
    for (int g = 0; g < externals.groups(); ++g) {
      const int h = g ^ f.irrep;
      if (h > g) continue;
      const int m = externals.count(g), n = externals.count(h);
      for (int c = 0; c < m; ++c)
        for (int d = 0; d < (g == h ? c + 1 : n); ++d) {
          const std::int64_t straight = externals.mixed(f.irrep, g) + std::int64_t(c) * n + d,
                             turned = externals.mixed(f.irrep, h) + std::int64_t(d) * m + c;
          const bool pair = g != h || c != d;
          const std::int64_t same = externals.same(f.irrep, g) +
                                    (g == h ? std::int64_t(c) * (c - 1) / 2 + d : std::int64_t(c) * n + d);
          const auto mixed_at = [&](double* record, const Place& place, bool exchanged) -> double& {
            return record == nullptr ? zero = 0 : record[place.turned != exchanged ? turned : straight];
          };
          const auto same_at = [&](double* record) -> double& {
            return (record == nullptr || !pair) ? zero = 0 : record[same];
          };
          // Spins of i, j, c and d.
          const double abab = f.up.sign * mixed_at(up, f.up, false),
                       abba = -f.up.sign * mixed_at(up, f.up, true);
          if (group.i == group.j) {
            const double half = (abab - abba) / 2;
            mixed_at(up, f.up, false) = f.up.sign * half;
            mixed_at(up, f.up, true) = f.up.sign * half;
            continue;
          }
          const double baab = f.down.sign * mixed_at(down, f.down, false),
                       baba = -f.down.sign * mixed_at(down, f.down, true),
                       bbaa = f.outside_up.sign * same_at(outside_up),
                       aabb = f.inside_up.sign * same_at(inside_up);
          const double pairs = (abab - abba - baab + baba) / 2;  // i with j, c with d: singlets
          const double triplets = (aabb + bbaa) / std::numbers::sqrt3 - third * (abab + abba + baab + baba);
          mixed_at(up, f.up, false) = f.up.sign * (pairs / 2 - third * triplets);
          if (pair) mixed_at(up, f.up, true) = -f.up.sign * (-pairs / 2 - third * triplets);
          mixed_at(down, f.down, false) = f.down.sign * (-pairs / 2 - third * triplets);
          if (pair) mixed_at(down, f.down, true) = -f.down.sign * (pairs / 2 - third * triplets);
          same_at(outside_up) = f.outside_up.sign * triplets / std::numbers::sqrt3;
          same_at(inside_up) = f.inside_up.sign * triplets / std::numbers::sqrt3;
        }
    }
  }
}

}  // namespace outcore::chem::mrci
