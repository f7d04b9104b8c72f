#include "chem/ci/opposite_spin.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>

#include "base/thread_team.hpp"
#include "chem/ci/aligned.hpp"

namespace outcore::chem::ci {
namespace {

constexpr std::int64_t batch = 128;  // holes of beta electrons in a product of matrices
constexpr std::int64_t line =
    batch + run_margin;                   // from one line to the next; no power of two, for the cache
constexpr std::int64_t locked = 512;      // columns of rows of one irrep that are added to under one lock
constexpr std::size_t lock_count = 1024;  // they share these locks

std::vector<Run> runs_of(const Orbitals& orbitals, const Strings& strings, const Strings& holes) {
  std::vector<Run> runs;
  runs.reserve(std::size_t(holes.count()) * std::size_t(orbitals.count()));
  for (std::uint64_t hole : holes.masks()) {
    const int irrep = orbitals.irrep_of(hole);
    for (int s = 0; s < orbitals.count(); ++s) {
      const int sector = irrep ^ orbitals.irrep(s);
      Run run = Run(strings.count(sector));
      if (!occupied(hole, s)) {
        run = Run(strings.rank(with(hole, s)) - strings.offset(sector));
        if (below(hole, s) & 1) run |= negative;
      }
      runs.push_back(run);
    }
  }
  return runs;
}

}  // namespace

OppositeSpin::OppositeSpin(std::shared_ptr<const Space> space, const Integrals& integrals, Blas blas)
    : space_(std::move(space)), blas_(blas), same_orbitals_(integrals.same_orbitals) {
  if (space_->alpha_holes.empty() || space_->beta_holes.count() == 0) return;
  for (int g = 0; g < space_->orbitals.groups(); ++g) {
    layouts_.emplace_back(space_->orbitals, g);
    exact_.push_back(pair_matrix<double>(layouts_.back(), integrals));
  }
  beta_runs_ = runs_of(space_->orbitals, space_->beta, space_->beta_holes);
}

template <class Real>
const std::vector<PairMatrix<Real>>& OppositeSpin::matrices() const {
  if constexpr (sizeof(Real) == sizeof(double)) {
    return exact_;
  } else {
    std::call_once(rounded_made_, [this] {
      const auto rounded = [](const Aligned<double>& from) {
        return Aligned<float>(from.begin(), from.end());
      };
      for (const auto& each : exact_)
        rounded_.push_back({rounded(each.full), rounded(each.plus), rounded(each.minus)});
    });
    return rounded_;
  }
}

Operations OppositeSpin::operations(std::int64_t index) const {
  Operations sum{0, 0};
  if (layouts_.empty()) return sum;
  const std::uint64_t hole = space_->alpha_holes[std::size_t(index)];
  const int irrep = space_->orbitals.irrep_of(hole);
  for (int g = 0; g < space_->orbitals.groups(); ++g) {
    const PairLayout& layout = layouts_[std::size_t(space_->target ^ irrep ^ g)];
    const double lines = double(space_->beta_holes_until(g, hole));
    double restricted = 0;
    for (int q : layout.q) restricted += !occupied(hole, q);
    sum.pairs += lines * (double(layout.plus()) * layout.plus() + double(layout.minus) * layout.minus);
    sum.restricted += lines * restricted * restricted;
  }
  return sum;
}

/// What one thread does and has.
template <class Real>
class OppositeSpin::Task {
 public:
  Task(const OppositeSpin& of, const Panel& x, Panel& t, std::vector<std::mutex>& locks)
      : of_(of),
        space_(*of.space_),
        orbitals_(space_.orbitals),
        loops_(run_loops<Real>()),
        matrices_(of.matrices<Real>()),
        from_(x),
        to_(t),
        locks_(locks) {
    int widest = 0, most = 0;
    for (int i = 0; i < orbitals_.groups(); ++i) widest = std::max(widest, orbitals_.count(i));
    for (const PairLayout& layout : of.layouts_) most = std::max(most, layout.size());
    for (int g = 0; g < orbitals_.groups(); ++g) {
      const auto size = std::size_t(space_.beta.count(g) + 1) * std::size_t(widest) + run_margin;
      x_[std::size_t(g)].resize(size);
      y_[std::size_t(g)].resize(size);
    }
    for (auto* lines : {&lines_, &in_, &out_}) lines->resize(std::size_t(line * most));
  }

  void run(std::int64_t index) {
    hole_ = space_.alpha_holes[std::size_t(index)];
    irrep_ = orbitals_.irrep_of(hole_);
    pairs_ = of_.takes_pairs(of_.operations(index));
    fill();
    for (int g = 0; g < orbitals_.groups(); ++g) sector(g);
    flush();
  }

 private:
  /// The alpha orbitals of an irrep that are in runs, with the rows that they create.
  struct RowsOfIrrep {
    int irrep;  // of the rows
    std::vector<int> orbitals;
    std::vector<std::int64_t> from, to;  // places of rows in the panels, -1 if the hole has the orbital
    std::vector<Real> signs;
    std::vector<Strings::Range> columns;
    std::vector<std::int64_t> column_places;
    [[nodiscard]] int length() const { return int(orbitals.size()); }
  };

  void find_rows(int j) {
    RowsOfIrrep& rows = rows_[std::size_t(j)];
    rows.irrep = irrep_ ^ j;
    rows.orbitals.clear(), rows.from.clear(), rows.to.clear(), rows.signs.clear();
    rows.column_places.clear();
    for (int q = orbitals_.first(j); q < orbitals_.first(j + 1); ++q) {
      const bool empty = !occupied(hole_, q);
      if (!pairs_ && !empty) continue;
      rows.orbitals.push_back(q);
      const std::int64_t index = empty ? space_.alpha.rank(with(hole_, q)) : -1;
      rows.from.push_back(empty ? from_.row_place(index) : -1);
      rows.to.push_back(empty ? to_.row_place(index) : -1);
      rows.signs.push_back(empty ? Real(below(hole_, q) & 1 ? -1 : 1) : Real(0));
    }
    const int sector = rows.irrep ^ space_.target;
    if (space_.folded)
      space_.beta.reached_from(sector, hole_, rows.columns);
    else
      rows.columns = {{space_.beta.offset(sector), space_.beta.offset(sector + 1)}};
    for (const auto& range : rows.columns)
      rows.column_places.push_back(range.first == range.last ? 0 : from_.column_place(range.first));
  }

  /// Copies of the rows that the hole reaches, with all orbitals of an irrep side by side.
  void fill() {
    std::array<const Real*, max_orbitals> sources;
    for (int j = 0; j < orbitals_.groups(); ++j) {
      find_rows(j);
      const RowsOfIrrep& rows = rows_[std::size_t(j)];
      const auto length = std::size_t(rows.length());
      if (length == 0) continue;
      const int sector = rows.irrep ^ space_.target;
      Real* x = x_[std::size_t(sector)].data();
      Real* y = y_[std::size_t(sector)].data();
      for (std::size_t part = 0; part < rows.columns.size(); ++part) {
        const auto [first, last] = rows.columns[part];
        for (std::size_t c = 0; c < length; ++c)
          sources[c] = rows.from[c] < 0
                           ? nullptr
                           : from_.row<Real>(rows.from[c], rows.irrep) + rows.column_places[part];
        const auto at = std::size_t(first - space_.beta.offset(sector)) * length;
        const auto columns = std::size_t(last - first);
        loops_.interleave(x + at, sources.data(), rows.signs.data(), rows.length(), columns);
        std::fill_n(y + at, columns * length, Real(0));
      }
      // What an occupied beta orbital reads, and where it writes.
      const auto dump = std::size_t(space_.beta.count(sector)) * length;
      std::fill_n(x + dump, length, Real(0));
      std::fill_n(y + dump, length, Real(0));
    }
  }

  void sector(int g) {
    const std::int64_t first = space_.beta_holes.offset(g);
    const std::int64_t last = first + space_.beta_holes_until(g, hole_);
    if (first == last) return;
    irrep_of_pair_ = space_.target ^ irrep_ ^ g;
    const PairLayout& layout = of_.layouts_[std::size_t(irrep_of_pair_)];
    width_ = layout.size();
    base_ = layout.base;
    if (!pairs_) restrict_to_empty(layout);
    if (width_ == 0) return;
    for (std::int64_t k = first; k < last; k += batch) batch_of(g, layout, k, std::min(last, k + batch));
  }

  /// The integrals of the alpha orbitals that the hole leaves empty.
  void restrict_to_empty(const PairLayout& layout) {
    selected_.clear();
    for (int i = 0; i < orbitals_.groups(); ++i) base_[std::size_t(i)] = 0;
    for (int place = 0; place < layout.size(); ++place) {
      if (occupied(hole_, layout.q[std::size_t(place)])) continue;
      selected_.push_back(place);
    }
    for (int i = 0; i < orbitals_.groups(); ++i)
      base_[std::size_t(i)] =
          int(std::lower_bound(selected_.begin(), selected_.end(), layout.base[std::size_t(i)]) -
              selected_.begin());
    width_ = int(selected_.size());
    const auto size = std::size_t(width_);
    ones_.assign(size, Real(1));
    restricted_.resize(size * size);
    const Real* full = matrices_[std::size_t(irrep_of_pair_)].full.data();
    for (std::size_t u = 0; u < size; ++u)
      loops_.select(&restricted_[u * size], full + std::size_t(selected_[u]) * std::size_t(layout.size()),
                    selected_.data(), ones_.data(), width_);
  }

  /// Calls each(irrep of the beta orbital, runs of alpha orbitals).
  template <class Each>
  void each_irrep(const Each& each) {
    for (int i = 0; i < orbitals_.groups(); ++i) {
      const RowsOfIrrep& rows = rows_[std::size_t(i ^ irrep_of_pair_)];
      if (rows.length() > 0 && orbitals_.count(i) > 0) each(i, rows);
    }
  }
  [[nodiscard]] const Run* runs(std::int64_t hole, int irrep) const {
    return of_.beta_runs_.data() + hole * orbitals_.count() + orbitals_.first(irrep);
  }

  /// A batch of holes: gathers D, multiplies by integrals, scatters E.
  void batch_of(int g, const PairLayout& layout, std::int64_t first, std::int64_t last) {
    const auto holes = std::size_t(last - first), orbitals = std::size_t(orbitals_.count());
    each_irrep([&](int i, const RowsOfIrrep& rows) {
      loops_.gather(&lines_[std::size_t(base_[std::size_t(i)] * line)], line, x_[std::size_t(g ^ i)].data(),
                    runs(first, i), orbitals, holes, orbitals_.count(i), rows.length());
    });
    if (space_.folded) halve(first, last);
    pairs_ ? multiply_pairs(layout, int(holes)) : multiply(int(holes));
    each_irrep([&](int i, const RowsOfIrrep& rows) {
      loops_.scatter(y_[std::size_t(g ^ i)].data(), &lines_[std::size_t(base_[std::size_t(i)] * line)], line,
                     runs(first, i), orbitals, holes, orbitals_.count(i), rows.length());
    });
  }

  /// With folding, what belongs to the same holes of both spins comes once as it is and once transposed.
  void halve(std::int64_t first, std::int64_t last) {
    if (space_.beta_holes.mask(last - 1) < hole_) return;
    for (std::int64_t k = first; k < last; ++k)
      if (space_.beta_holes.mask(k) == hole_)
        for (int pair = 0; pair < width_; ++pair) lines_[std::size_t(pair * line + k - first)] *= Real(0.5);
  }

  void multiply(int holes) {
    lines_.swap(in_);
    of_.blas_.multiply(width_, holes, width_, restricted_.data(), width_, in_.data(), int(line),
                       lines_.data(), int(line));
  }

  void multiply_pairs(const PairLayout& layout, int holes) {
    const auto& matrix = matrices_[std::size_t(irrep_of_pair_)];
    const int plus = layout.plus(), minus = layout.minus;
    const auto line_of = [](Aligned<Real>& lines, std::int64_t pair) {
      return &lines[std::size_t(pair * line)];
    };
    // Lines of sums, then of differences.
    for (int c = 0; c < plus; ++c)
      loops_.combine(line_of(lines_, layout.left[std::size_t(c)]),
                     line_of(lines_, layout.right[std::size_t(c)]), line_of(in_, c),
                     c < minus ? line_of(in_, plus + c) : nullptr, std::size_t(holes));
    of_.blas_.multiply(plus, holes, plus, matrix.plus.data(), plus, in_.data(), int(line), out_.data(),
                       int(line));
    if (minus > 0)
      of_.blas_.multiply(minus, holes, minus, matrix.minus.data(), minus, line_of(in_, plus), int(line),
                         line_of(out_, plus), int(line));
    for (int c = 0; c < minus; ++c)
      loops_.combine(line_of(out_, c), line_of(out_, plus + c), line_of(lines_, layout.left[std::size_t(c)]),
                     line_of(lines_, layout.right[std::size_t(c)]), std::size_t(holes));
    for (int c = minus; c < plus; ++c)
      std::copy_n(line_of(out_, c), holes, line_of(lines_, layout.left[std::size_t(c)]));
  }

  void flush() {
    std::array<Real*, max_orbitals> targets;
    for (int j = 0; j < orbitals_.groups(); ++j) {
      const RowsOfIrrep& rows = rows_[std::size_t(j)];
      const int sector = rows.irrep ^ space_.target, length = rows.length();
      const std::int64_t offset = space_.beta.offset(sector);
      for (std::size_t part = 0; part < rows.columns.size(); ++part) {
        const auto [first, last] = rows.columns[part];
        const std::int64_t place = first == last ? 0 : to_.column_place(first);
        for (std::int64_t b = first, end; b < last; b = end) {
          end = std::min(last, ((b - offset) / locked + 1) * locked + offset);
          for (std::size_t c = 0; c < std::size_t(length); ++c)
            targets[c] =
                rows.to[c] < 0 ? nullptr : to_.row<Real>(rows.to[c], rows.irrep) + place + (b - first);
          const Real* y = y_[std::size_t(sector)].data() + (b - offset) * length;
          const auto lock_of = std::size_t((b - offset) / locked * max_groups + rows.irrep);
          const std::lock_guard lock(locks_[lock_of % lock_count]);
          loops_.add_interleaved(targets.data(), rows.signs.data(), y, length, std::size_t(end - b));
        }
      }
    }
  }

  const OppositeSpin& of_;
  const Space& space_;
  const Orbitals& orbitals_;
  const RunLoops<Real>& loops_;
  const std::vector<PairMatrix<Real>>& matrices_;
  const Panel& from_;
  Panel& to_;
  std::vector<std::mutex>& locks_;

  // One hole of alpha electrons.
  std::uint64_t hole_ = 0;
  int irrep_ = 0;
  bool pairs_ = false;
  std::array<RowsOfIrrep, max_groups> rows_;     // by irrep of the orbital
  std::array<Aligned<Real>, max_groups> x_, y_;  // by irrep of the column: [column + 1][run]
  // One sector of holes of beta electrons.
  int irrep_of_pair_ = 0, width_ = 0;
  std::array<int, max_groups> base_{};
  std::vector<std::int32_t> selected_;
  std::vector<Real> ones_;
  Aligned<Real> restricted_;
  // One batch.
  Aligned<Real> lines_, in_, out_;  // [pair][hole]
};

template <class Real>
void OppositeSpin::apply(const Panel& x, Panel& t, std::int64_t first, std::int64_t last, int threads) const {
  if (first >= last || layouts_.empty()) return;
  std::vector<std::mutex> locks(lock_count);
  std::atomic<std::int64_t> next{last};  // the last are the largest of folded spaces
  const int team = int(std::clamp<std::int64_t>(last - first, 1, std::max(threads, 1)));
  in_team(team, [&](int) {
    Task<Real> task(*this, x, t, locks);
    for (std::int64_t k; (k = --next) >= first;) task.run(k);
  });
}

template void OppositeSpin::apply<double>(const Panel&, Panel&, std::int64_t, std::int64_t, int) const;
template void OppositeSpin::apply<float>(const Panel&, Panel&, std::int64_t, std::int64_t, int) const;

}  // namespace outcore::chem::ci
