#include "chem/mrci/holes.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace outcore::chem::mrci {
namespace {

/// How a part is reached from a record with given external electrons: which electrons of the pair are taken
/// out of internal orbitals.
struct Way {
  External from;      ///< in the record; `alpha` stands for the first spin
  int first, second;  ///< internal electrons that are taken of each spin
};

std::vector<Way> ways(Part part) {
  using enum External;
  switch (part) {
    case Part::opposite:
      return {{none, 1, 1}, {alpha, 0, 1}, {beta, 1, 0}, {alpha_beta, 0, 0}};
    case Part::opposite_first:
      return {{alpha, 1, 1}, {alpha_alpha, 0, 1}, {alpha_beta, 1, 0}};
    case Part::opposite_both:
      return {{alpha_beta, 1, 1}};
    case Part::opposite_first_twice:
      return {{alpha_alpha, 1, 1}};
    case Part::same:
      return {{none, 2, 0}, {alpha, 1, 0}, {alpha_alpha, 0, 0}};
    case Part::same_first:
      return {{alpha, 2, 0}, {alpha_alpha, 1, 0}};
    case Part::same_second:
      return {{beta, 2, 0}, {alpha_beta, 1, 0}};
    case Part::same_first_twice:
      return {{alpha_alpha, 2, 0}};
    case Part::same_both:
      return {{alpha_beta, 2, 0}};
    default:
      return {{beta_beta, 2, 0}};
  }
}

bool is_symmetric(Part part) {
  return part == Part::opposite || part == Part::opposite_both;
}

/// Finds the strings with `electrons` electrons less.
void reduced(std::uint64_t string, int electrons, std::vector<std::uint64_t>& found) {
  if (electrons == 0) {
    found.push_back(string);
    return;
  }
  for (std::uint64_t left = string; left != 0; left &= left - 1) {
    const std::uint64_t without = string & ~(left & -left);
    if (electrons == 1) {
      found.push_back(without);
      continue;
    }
    for (std::uint64_t more = left & (left - 1); more != 0; more &= more - 1)
      found.push_back(without & ~(more & -more));
  }
}

class Collector {
 public:
  Collector(const Space& space, Part part, bool swapped)
      : folded_(space.parity() != 0 && is_symmetric(part)), ways_(ways(part)), swapped_(swapped) {}

  void add(External kind, std::uint64_t alpha, std::uint64_t beta) {
    if (swapped_) {
      kind = exchanged(kind);
      std::swap(alpha, beta);
    }
    for (const Way& way : ways_) {
      if (way.from != kind) continue;
      first_.clear();
      second_.clear();
      reduced(alpha, way.first, first_);
      reduced(beta, way.second, second_);
      for (std::uint64_t first : first_)
        for (std::uint64_t second : second_)
          if (!folded_ || second <= first) found_.push_back({first, second});
    }
    if (found_.size() > 2 * unique_ + (std::size_t{1} << 16)) unite();
  }

  std::vector<Hole> take() {
    unite();
    return std::move(found_);
  }

 private:
  void unite() {
    const auto key = [](const Hole& each) { return std::tuple(each.first, each.second); };
    std::sort(found_.begin(), found_.end(), [&](const Hole& a, const Hole& b) { return key(a) < key(b); });
    found_.erase(std::unique(found_.begin(), found_.end(),
                             [&](const Hole& a, const Hole& b) { return key(a) == key(b); }),
                 found_.end());
    unique_ = found_.size();
  }

  bool folded_;
  std::vector<Way> ways_;
  bool swapped_;
  std::size_t unique_ = 0;
  std::vector<Hole> found_;
  std::vector<std::uint64_t> first_, second_;
};

}  // namespace

std::vector<Holes> list_holes(const Space& space) {
  std::vector<Holes> found;
  for (std::size_t number = 0; number < part_count; ++number) {
    const auto part = Part(number);
    for (const bool swapped : {false, true}) {
      if (swapped && (space.parity() != 0 || is_symmetric(part))) continue;
      Collector collector(space, part, swapped);
      for (const Record& each : space.records()) {
        collector.add(each.kind, each.alpha, each.beta);
        if (space.parity() != 0 && !each.own) collector.add(exchanged(each.kind), each.beta, each.alpha);
      }
      auto holes = collector.take();
      if (part != Part::opposite && part != Part::same) {
        if (!holes.empty()) found.push_back({part, swapped, -1, std::move(holes)});
        continue;
      }
      for (int g = 0; g < space.externals().groups(); ++g) {
        std::vector<Hole> of_irrep;
        for (const Hole& each : holes)
          if ((space.target() ^ space.irrep_of(each.first) ^ space.irrep_of(each.second)) == g)
            of_irrep.push_back(each);
        if (!of_irrep.empty()) found.push_back({part, swapped, g, std::move(of_irrep)});
      }
    }
  }
  return found;
}

}  // namespace outcore::chem::mrci
