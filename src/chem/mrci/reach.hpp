// The segments of records that a hole reaches, and their rows in the matrices of integrals.
#pragma once

#include <cstdint>
#include <vector>

#include "chem/mrci/holes.hpp"
#include "chem/mrci/pairs.hpp"
#include "chem/mrci/segment.hpp"

namespace outcore::chem::mrci {

/// Consecutive rows of a matrix of integrals.
struct Rows {
  int first, count;
};

/// What one hole reaches with spectators (electrons of the hole in external orbitals) of one irrep. Panels
/// are [row][spectators], rows in the order of `rows`.
struct Reach {
  std::vector<PanelSegment> segments;
  std::vector<Rows> rows;
  int row_count = 0;
  int columns = 0;
  int irrep = 0;  ///< of the pair

  void clear(int spectators, int of_pair) {
    segments.clear();
    rows.clear();
    row_count = 0;
    columns = spectators;
    irrep = of_pair;
  }
};

/// Whether holes of a part have no external electrons: they then reach all rows of the integrals, in order,
/// as one line of a panel.
[[nodiscard]] inline bool is_line(Part part) noexcept {
  return part == Part::opposite || part == Part::same;
}
/// Whether holes of a part have two external electrons: their rows are whole records.
[[nodiscard]] bool is_whole(Part part) noexcept;
[[nodiscard]] bool is_opposite(Part part) noexcept;

/// The integrals for all irreps of pairs.
struct Pairs {
  std::vector<OppositePairs> opposite;
  std::vector<EqualPairs> same;
};

/// Finds the segments that holes reach. One thread.
class Reacher {
 public:
  Reacher(const Space& space, const Pairs& pairs) : space_(space), pairs_(pairs) {}

  /// For lines, whose panel begins at `at`: adds to `reach`.
  void add_line(const Holes& of, const Hole& hole, std::int64_t at, Reach& reach) const;
  /// For other parts, with spectators of an irrep.
  void find(const Holes& of, const Hole& hole, int irrep, Reach& reach) const;

 private:
  [[nodiscard]] Place place(External kind, std::uint64_t first, std::uint64_t second,
                            bool swapped) const noexcept;
  void add(Reach& reach, const Place& place, PanelSegment::Shape shape, std::int64_t from, Rows rows,
           int columns, int sign) const;
  void add_whole(Reach& reach, const Place& place, std::int64_t at, int sign) const;
  void add_block(Reach& reach, const Place& place, int of_rows, int of_columns, bool rows_are_second,
                 Rows rows, int sign) const;
  void add_exchanged(Reach& reach, const Place& place, int of_rows, int of_columns, Rows rows,
                     int sign) const;
  void opposite_line(const Holes& of, const Hole& hole, std::int64_t at, Reach& reach) const;
  void same_line(const Holes& of, const Hole& hole, std::int64_t at, Reach& reach) const;
  void opposite_first(const Holes& of, const Hole& hole, int irrep, Reach& reach) const;
  void same_one(const Holes& of, const Hole& hole, int irrep, Reach& reach) const;
  void whole(const Holes& of, const Hole& hole, Reach& reach) const;

  const Space& space_;
  const Pairs& pairs_;
};

}  // namespace outcore::chem::mrci
