// A hole is an N-1 electron string of one spin. The rows of a vector that one alpha hole reaches are copied
// so that the elements of all alpha orbitals of one irrep are neighbours. Lines, which beta holes need, are
// read from these copies.
#pragma once

#include <algorithm>
#include <array>

#include "chem/ci/pair_matrix.hpp"
#include "chem/ci/panel.hpp"
#include "chem/ci/run_kernels.hpp"
#include "chem/common/aligned.hpp"

namespace outcore::chem::ci {

/// The number of beta holes of a batch, and the number of elements from one line to the next. The latter is
/// no power of two, which would map all lines to the same places of the cache.
inline constexpr std::int64_t batch_holes = 128;
inline constexpr std::int64_t line_stride = batch_holes + run_margin;

/// The rows for the alpha orbitals of one irrep.
template <class Real>
struct RowsOfIrrep {
  int irrep;                          // of the rows
  std::vector<std::int64_t> indices;  // of the string that each orbital creates; -1: the hole has it
  std::vector<Real> signs;
  std::int64_t first, last;  // of the columns that are copied
  [[nodiscard]] int length() const { return int(indices.size()); }
};

/// Which pairs of orbitals (s, q) have lines, for one alpha hole and one sector of beta holes.
struct PairsOfHole {
  int irrep = 0;  // of the pairs
  int count = 0;
  std::array<int, max_groups> base{};  // of lines, by irrep of s
  std::vector<std::int32_t> selected;  // their places in the layout, unless all pairs have lines
};

template <class Real>
class HoleRows {
 public:
  HoleRows(const Space& space, const std::vector<Run>& beta_runs)
      : space_(space), orbitals_(space.orbitals), beta_runs_(beta_runs), loops_(run_loops<Real>()) {
    for (int i = 0; i < orbitals_.groups(); ++i) widest_ = std::max(widest_, orbitals_.count(i));
    for (int g = 0; g < orbitals_.groups(); ++g) copies_[std::size_t(g)].resize(size_of_copy(g));
  }

  /// Elements of a copy of a sector of columns: one run for each column, and one for absent columns.
  [[nodiscard]] std::size_t size_of_copy(int sector) const {
    return std::size_t(space_.beta.count(sector) + 1) * std::size_t(widest_) + run_margin;
  }

  [[nodiscard]] std::uint64_t hole() const noexcept { return hole_; }
  /// By irrep of the alpha orbital.
  [[nodiscard]] const RowsOfIrrep<Real>& rows(int irrep) const { return rows_[std::size_t(irrep)]; }
  [[nodiscard]] int sector(const RowsOfIrrep<Real>& rows) const { return rows.irrep ^ space_.target; }

  /// `all_orbitals`: runs have zeros for orbitals that the hole has; else runs leave these orbitals out.
  void copy(const Panel& panel, std::uint64_t hole, bool all_orbitals) {
    hole_ = hole;
    irrep_ = orbitals_.irrep_of(hole);
    std::array<const Real*, max_orbitals> sources;
    for (int j = 0; j < orbitals_.groups(); ++j) {
      find_rows(j, all_orbitals);
      const RowsOfIrrep<Real>& rows = rows_[std::size_t(j)];
      const auto length = std::size_t(rows.length());
      if (length == 0) continue;
      Real* copy = copies_[std::size_t(sector(rows))].data();
      if (rows.first < rows.last) {
        const std::int64_t first = rows.first - space_.beta.offset(sector(rows));
        for (std::size_t c = 0; c < length; ++c)
          sources[c] =
              rows.indices[c] < 0 ? nullptr : panel.at<Real>(panel.row_place(rows.indices[c]), first);
        loops_.interleave(copy + std::size_t(first) * length, sources.data(), rows.signs.data(),
                          rows.length(), std::size_t(rows.last - rows.first));
      }
      // The run that an occupied beta orbital reads.
      std::fill_n(copy + std::size_t(space_.beta.count(sector(rows))) * length, length, Real(0));
    }
  }

  /// Lines of a sector of beta holes: for all pairs of the layout, or for those whose alpha orbital is empty
  /// in the alpha hole.
  void find_pairs(int holes_irrep, const std::vector<PairLayout>& layouts, bool all_orbitals,
                  PairsOfHole& pairs) const {
    pairs.irrep = space_.target ^ irrep_ ^ holes_irrep;
    const PairLayout& layout = layouts[std::size_t(pairs.irrep)];
    pairs.base = layout.base;
    pairs.count = layout.size();
    if (all_orbitals) return;
    pairs.selected.clear();
    for (int place = 0; place < layout.size(); ++place)
      if (!occupied(hole_, layout.q[std::size_t(place)])) pairs.selected.push_back(place);
    pairs.count = int(pairs.selected.size());
    for (int i = 0; i < orbitals_.groups(); ++i)
      pairs.base[std::size_t(i)] =
          int(std::lower_bound(pairs.selected.begin(), pairs.selected.end(), layout.base[std::size_t(i)]) -
              pairs.selected.begin());
  }

  /// Fills the lines of beta holes [first, last), of one sector. With folding, if `halves`, elements of a
  /// beta hole that equals the alpha hole are halved, because they count twice: once as they are and once
  /// transposed.
  void gather(const PairsOfHole& pairs, int holes_irrep, std::int64_t first, std::int64_t last, bool halves,
              Real* lines) const {
    each_irrep(pairs, [&](int i, const RowsOfIrrep<Real>& rows) {
      loops_.gather(lines + pairs.base[std::size_t(i)] * line_stride, line_stride,
                    copies_[std::size_t(holes_irrep ^ i)].data(), runs(first, i),
                    std::size_t(orbitals_.count()), std::size_t(last - first), orbitals_.count(i),
                    rows.length());
    });
    // The equal hole comes before all others that the hole meets.
    if (!space_.folded || !halves || space_.beta_holes.mask(first) != hole_) return;
    for (int pair = 0; pair < pairs.count; ++pair) lines[pair * line_stride] *= Real(0.5);
  }

  /// The reverse of `gather`: adds lines to the copies, by sector of columns.
  void scatter(const PairsOfHole& pairs, int holes_irrep, std::int64_t first, std::int64_t last,
               const Real* lines, std::array<Aligned<Real>, max_groups>& copies) const {
    each_irrep(pairs, [&](int i, const RowsOfIrrep<Real>& rows) {
      loops_.scatter(copies[std::size_t(holes_irrep ^ i)].data(),
                     lines + pairs.base[std::size_t(i)] * line_stride, line_stride, runs(first, i),
                     std::size_t(orbitals_.count()), std::size_t(last - first), orbitals_.count(i),
                     rows.length());
    });
  }

 private:
  void find_rows(int j, bool all_orbitals) {
    RowsOfIrrep<Real>& rows = rows_[std::size_t(j)];
    rows.irrep = irrep_ ^ j;
    rows.indices.clear(), rows.signs.clear();
    for (int q = orbitals_.first(j); q < orbitals_.first(j + 1); ++q) {
      const bool empty = !occupied(hole_, q);
      if (!all_orbitals && !empty) continue;
      rows.indices.push_back(empty ? space_.alpha.rank(with(hole_, q)) : -1);
      rows.signs.push_back(empty ? Real(below(hole_, q) & 1 ? -1 : 1) : Real(0));
    }
    rows.first = space_.first_beta(sector(rows), hole_);
    rows.last = space_.beta.offset(sector(rows) + 1);
  }

  /// Calls each(irrep of the beta orbital, rows of the alpha orbitals).
  template <class Each>
  void each_irrep(const PairsOfHole& pairs, const Each& each) const {
    for (int i = 0; i < orbitals_.groups(); ++i) {
      const RowsOfIrrep<Real>& rows = rows_[std::size_t(i ^ pairs.irrep)];
      if (rows.length() > 0 && orbitals_.count(i) > 0) each(i, rows);
    }
  }
  [[nodiscard]] const Run* runs(std::int64_t hole, int irrep) const {
    return beta_runs_.data() + hole * orbitals_.count() + orbitals_.first(irrep);
  }

  const Space& space_;
  const Orbitals& orbitals_;
  const std::vector<Run>& beta_runs_;
  const RunLoops<Real>& loops_;
  int widest_ = 0, irrep_ = 0;
  std::uint64_t hole_ = 0;
  std::array<RowsOfIrrep<Real>, max_groups> rows_;
  std::array<Aligned<Real>, max_groups> copies_;  // by sector of the columns: [column + 1][run]
};

}  // namespace outcore::chem::ci
