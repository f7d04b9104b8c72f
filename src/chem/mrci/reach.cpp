#include "chem/mrci/reach.hpp"

#include <bit>

#include "chem/common/masks.hpp"

namespace outcore::chem::mrci {
namespace {

External spectators(Part part) {
  switch (part) {
    case Part::opposite_first:
    case Part::same_first:
      return External::alpha;
    case Part::same_second:
      return External::beta;
    case Part::opposite_both:
    case Part::same_both:
      return External::alpha_beta;
    case Part::opposite_first_twice:
    case Part::same_first_twice:
      return External::alpha_alpha;
    case Part::same_second_twice:
      return External::beta_beta;
    default:
      return External::none;
  }
}

}  // namespace

bool is_whole(Part part) noexcept {
  const auto outside = electrons_of(spectators(part));
  return outside[0] + outside[1] == 2;
}

bool is_opposite(Part part) noexcept {
  return part < Part::same;
}

Place Reacher::place(External kind, std::uint64_t first, std::uint64_t second, bool swapped) const noexcept {
  if (!swapped) return space_.locate(kind, first, second);
  Place found = space_.locate(exchanged(kind), second, first);
  if (kind == External::alpha_beta) found.turned = !found.turned;
  return found;
}

void Reacher::add(Reach& reach, const Place& place, PanelSegment::Shape shape, std::int64_t from, Rows rows,
                  int columns, int sign) const {
  const std::int64_t at = std::int64_t(reach.row_count) * reach.columns;
  reach.segments.push_back(
      {shape, place.record, from, at, rows.count, columns, sign & 1 ? -place.sign : place.sign});
  reach.rows.push_back(rows);
  reach.row_count += rows.count;
}

void Reacher::add_whole(Reach& reach, const Place& place, std::int64_t at, int sign) const {
  const auto size = int(space_.record(place.record).size);
  reach.segments.push_back({place.turned ? PanelSegment::Shape::mirrored : PanelSegment::Shape::line,
                            place.record, 0, at, 1, size, sign & 1 ? -place.sign : place.sign});
}

/// The segment of a record of `alpha_beta`, whose axes are the first and the second spin: rows of one,
/// columns of the other.
void Reacher::add_block(Reach& reach, const Place& place, int of_rows, int of_columns, bool rows_are_second,
                        Rows rows, int sign) const {
  if (rows.count == 0) return;
  const bool turned = rows_are_second != place.turned;
  const std::int64_t from = space_.externals().mixed(of_rows ^ of_columns, turned ? of_columns : of_rows);
  add(reach, place, turned ? PanelSegment::Shape::turned : PanelSegment::Shape::straight, from, rows,
      space_.externals().count(of_columns), sign);
}

/// The segment of a record of two electrons of one spin: its sign is that of the exchange of both.
void Reacher::add_exchanged(Reach& reach, const Place& place, int of_rows, int of_columns, Rows rows,
                            int sign) const {
  if (rows.count == 0) return;
  const int irrep = of_rows ^ of_columns, columns = space_.externals().count(of_columns);
  if (of_rows == of_columns)
    add(reach, place, PanelSegment::Shape::triangle, space_.externals().same(0, of_rows), rows, columns,
        sign);
  else if (of_rows > of_columns)
    add(reach, place, PanelSegment::Shape::straight, space_.externals().same(irrep, of_rows), rows, columns,
        sign + 1);
  else
    add(reach, place, PanelSegment::Shape::turned, space_.externals().same(irrep, of_columns), rows, columns,
        sign);
}

void Reacher::add_line(const Holes& of, const Hole& hole, std::int64_t at, Reach& reach) const {
  if (of.part == Part::opposite)
    opposite_line(of, hole, at, reach);
  else
    same_line(of, hole, at, reach);
}

void Reacher::opposite_line(const Holes& of, const Hole& hole, std::int64_t at, Reach& reach) const {
  const OppositePairs& pairs = pairs_.opposite[std::size_t(of.irrep)];
  const auto [first, second] = hole;
  const int u = space_.internals(), outside_first = std::popcount(first),
            outside_second = std::popcount(second);
  for (int s = 0; s < u; ++s) {
    if (occupied(second, s)) continue;
    const Place one = place(External::alpha, first, with(second, s), of.swapped);
    if (one.record >= 0)
      add_whole(reach, one, at + pairs.first_external(s), outside_first + below(second, s));
    for (int q = 0; q < u; ++q) {
      if (occupied(first, q) || pairs.internal(q, s) < 0) continue;
      const Place none = place(External::none, with(first, q), with(second, s), of.swapped);
      if (none.record >= 0)
        add_whole(reach, none, at + pairs.internal(q, s), below(first, q) + below(second, s));
    }
  }
  for (int q = 0; q < u; ++q) {
    if (occupied(first, q)) continue;
    const Place one = place(External::beta, with(first, q), second, of.swapped);
    if (one.record >= 0)
      add_whole(reach, one, at + pairs.second_external(q), below(first, q) + outside_second);
  }
  const Place both = place(External::alpha_beta, first, second, of.swapped);
  if (both.record >= 0) add_whole(reach, both, at + pairs.mixed, outside_first + outside_second);
}

void Reacher::same_line(const Holes& of, const Hole& hole, std::int64_t at, Reach& reach) const {
  const EqualPairs& pairs = pairs_.same[std::size_t(of.irrep)];
  const auto [first, second] = hole;
  const int u = space_.internals(), outside = std::popcount(first) + 1;
  for (int s = 0; s < u; ++s) {
    if (occupied(first, s)) continue;
    const std::uint64_t one = with(first, s);
    const Place mixed = place(External::alpha, one, second, of.swapped);
    if (mixed.record >= 0) add_whole(reach, mixed, at + pairs.first_external(s), below(first, s) + outside);
    for (int q = s + 1; q < u; ++q) {
      if (occupied(first, q) || pairs.internal(q, s) < 0) continue;
      const Place none = place(External::none, with(one, q), second, of.swapped);
      if (none.record >= 0)
        add_whole(reach, none, at + pairs.internal(q, s), below(first, s) + below(one, q));
    }
  }
  const Place both = place(External::alpha_alpha, first, second, of.swapped);
  if (both.record >= 0) add_whole(reach, both, at + pairs.mixed, 1);
}

void Reacher::find(const Holes& of, const Hole& hole, int irrep, Reach& reach) const {
  const auto columns = int(space_.externals().size(spectators(of.part), irrep));
  reach.clear(columns, space_.target() ^ space_.irrep_of(hole.first) ^ space_.irrep_of(hole.second) ^ irrep);
  if (columns == 0) return;
  if (is_whole(of.part))
    whole(of, hole, reach);
  else if (of.part == Part::opposite_first)
    opposite_first(of, hole, irrep, reach);
  else
    same_one(of, hole, irrep, reach);
}

void Reacher::opposite_first(const Holes& of, const Hole& hole, int irrep, Reach& reach) const {
  const OppositePairs& pairs = pairs_.opposite[std::size_t(reach.irrep)];
  const Externals& externals = space_.externals();
  const auto [first, second] = hole;
  const int u = space_.internals();
  for (int s = 0; s < u; ++s) {
    if (occupied(second, s)) continue;
    const std::uint64_t more = with(second, s);
    for (int q = 0; q < u; ++q) {
      if (occupied(first, q) || pairs.internal(q, s) < 0) continue;
      const Place one = place(External::alpha, with(first, q), more, of.swapped);
      if (one.record >= 0)
        add(reach, one, PanelSegment::Shape::line, 0, {pairs.internal(q, s), 1}, reach.columns,
            below(first, q) + below(second, s));
    }
    const int of_c = reach.irrep ^ space_.irrep(s);
    const Place two = place(External::alpha_alpha, first, more, of.swapped);
    if (two.record >= 0)
      add_exchanged(reach, two, of_c, irrep, {pairs.first_external(s), externals.count(of_c)},
                    std::popcount(first) + below(second, s));
  }
  for (int q = 0; q < u; ++q) {
    if (occupied(first, q)) continue;
    const int of_d = reach.irrep ^ space_.irrep(q);
    const Place both = place(External::alpha_beta, with(first, q), second, of.swapped);
    if (both.record >= 0)
      add_block(reach, both, of_d, irrep, true, {pairs.second_external(q), externals.count(of_d)},
                below(first, q) + std::popcount(second));
  }
}

void Reacher::same_one(const Holes& of, const Hole& hole, int irrep, Reach& reach) const {
  const EqualPairs& pairs = pairs_.same[std::size_t(reach.irrep)];
  const Externals& externals = space_.externals();
  const auto [first, second] = hole;
  const int u = space_.internals(), outside = std::popcount(first) + 1;
  const bool own = of.part == Part::same_first;
  for (int s = 0; s < u; ++s) {
    if (occupied(first, s)) continue;
    const std::uint64_t more = with(first, s);
    for (int q = s + 1; q < u; ++q) {
      if (occupied(first, q) || pairs.internal(q, s) < 0) continue;
      const Place one = place(own ? External::alpha : External::beta, with(more, q), second, of.swapped);
      if (one.record >= 0)
        add(reach, one, PanelSegment::Shape::line, 0, {pairs.internal(q, s), 1}, reach.columns,
            below(first, s) + below(more, q));
    }
    const int of_c = reach.irrep ^ space_.irrep(s);
    const Rows rows{pairs.first_external(s), externals.count(of_c)};
    const Place two = place(own ? External::alpha_alpha : External::alpha_beta, more, second, of.swapped);
    if (two.record < 0) continue;
    if (own)
      add_exchanged(reach, two, of_c, irrep, rows, below(first, s) + outside);
    else
      add_block(reach, two, of_c, irrep, false, rows, below(first, s) + outside);
  }
}

void Reacher::whole(const Holes& of, const Hole& hole, Reach& reach) const {
  const External kind = spectators(of.part);
  const auto [first, second] = hole;
  const int u = space_.internals();
  const bool opposite = is_opposite(of.part);
  for (int s = 0; s < u; ++s) {
    if (occupied(opposite ? second : first, s)) continue;
    for (int q = opposite ? 0 : s + 1; q < u; ++q) {
      if (occupied(first, q)) continue;
      const int row = opposite ? pairs_.opposite[std::size_t(reach.irrep)].internal(q, s)
                               : pairs_.same[std::size_t(reach.irrep)].internal(q, s);
      if (row < 0) continue;
      const std::uint64_t middle = opposite ? first : with(first, s);
      const Place found = place(kind, with(middle, q), opposite ? with(second, s) : second, of.swapped);
      if (found.record < 0) continue;
      const int sign = below(opposite ? second : first, s) + below(middle, q);
      add_whole(reach, found, std::int64_t(reach.row_count) * reach.columns, sign);
      reach.rows.push_back({row, 1});
      ++reach.row_count;
    }
  }
}

}  // namespace outcore::chem::mrci
