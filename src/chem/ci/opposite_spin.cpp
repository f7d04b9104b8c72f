#include "chem/ci/opposite_spin.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>

#include "base/thread_team.hpp"

namespace outcore::chem::ci {
namespace {

constexpr std::int64_t batch = 128;      // holes of beta electrons in a product of matrices
constexpr std::int64_t chunk = 16;       // of these, what is gathered and combined while it is in the cache
constexpr std::int64_t locked = 1024;    // columns that are added to a row under one lock
constexpr std::size_t row_locks = 1024;  // rows share them

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
      const auto rounded = [](const std::vector<double>& from) {
        return std::vector<float>(from.begin(), from.end());
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
      const auto size = std::size_t(space_.beta.count(g) + 1) * std::size_t(widest);
      x_[std::size_t(g)].resize(size);
      y_[std::size_t(g)].resize(size);
    }
    lines_.resize(std::size_t(chunk * most));
    in_.resize(std::size_t(batch * most));
    out_.resize(std::size_t(batch * most));
    if (of.same_orbitals_) {
      in_minus_.resize(in_.size());
      out_minus_.resize(in_.size());
    }
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
    std::vector<std::int64_t> places;
    std::vector<Real> signs;
    std::vector<Strings::Range> columns;
    std::vector<std::int64_t> column_places;
    [[nodiscard]] int length() const { return int(orbitals.size()); }
  };

  void find_rows(int j) {
    RowsOfIrrep& rows = rows_[std::size_t(j)];
    rows.irrep = irrep_ ^ j;
    rows.orbitals.clear(), rows.places.clear(), rows.signs.clear(), rows.column_places.clear();
    for (int q = orbitals_.first(j); q < orbitals_.first(j + 1); ++q) {
      const bool empty = !occupied(hole_, q);
      if (!pairs_ && !empty) continue;
      rows.orbitals.push_back(q);
      rows.places.push_back(empty ? from_.row_place(space_.alpha.rank(with(hole_, q))) : -1);
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
          sources[c] = rows.places[c] < 0
                           ? nullptr
                           : from_.row<Real>(rows.places[c], rows.irrep) + rows.column_places[part];
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
    for (std::int64_t k = first; k < last; k += batch) lines(g, layout, k, std::min(last, k + batch));
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

  void lines(int g, const PairLayout& layout, std::int64_t first, std::int64_t last) {
    const auto width = std::size_t(width_), orbitals = std::size_t(orbitals_.count());
    const auto plus = std::size_t(layout.plus()), minus = std::size_t(layout.minus);
    for (std::int64_t k = first; k < last; k += chunk) {
      const auto count = std::size_t(std::min(last, k + chunk) - k), done = std::size_t(k - first);
      Real* gathered = pairs_ ? lines_.data() : &in_[done * width];
      each_irrep([&](int i, const RowsOfIrrep& rows) {
        loops_.gather(gathered + base_[std::size_t(i)], width, x_[std::size_t(g ^ i)].data(), runs(k, i),
                      orbitals, count, orbitals_.count(i), rows.length());
      });
      if (space_.folded)
        for (std::size_t b = 0; b < count; ++b)
          if (space_.beta_holes.mask(k + std::int64_t(b)) == hole_)
            for (std::size_t c = 0; c < width; ++c) gathered[b * width + c] *= Real(0.5);
      if (pairs_)
        for (std::size_t b = 0; b < count; ++b)
          loops_.combine(gathered + b * width, layout.left.data(), layout.right.data(), layout.minus,
                         layout.plus(), layout.left_in_order, &in_[(done + b) * plus],
                         in_minus_.data() + (done + b) * minus);
    }
    const auto& matrix = matrices_[std::size_t(irrep_of_pair_)];
    const int count = int(last - first);
    if (pairs_) {
      of_.blas_.multiply(count, int(plus), int(plus), in_.data(), int(plus), matrix.plus.data(), int(plus),
                         out_.data(), int(plus));
      if (minus > 0)
        of_.blas_.multiply(count, int(minus), int(minus), in_minus_.data(), int(minus), matrix.minus.data(),
                           int(minus), out_minus_.data(), int(minus));
    } else {
      of_.blas_.multiply(count, width_, width_, in_.data(), width_, restricted_.data(), width_, out_.data(),
                         width_);
    }
    for (std::int64_t k = first; k < last; k += chunk) {
      const auto holes = std::size_t(std::min(last, k + chunk) - k), done = std::size_t(k - first);
      if (pairs_)
        for (std::size_t b = 0; b < holes; ++b)
          loops_.split(&out_[(done + b) * plus], out_minus_.data() + (done + b) * minus, layout.left.data(),
                       layout.right.data(), layout.minus, layout.plus(), layout.left_in_order,
                       &lines_[b * width]);
      const Real* result = pairs_ ? lines_.data() : &out_[done * width];
      each_irrep([&](int i, const RowsOfIrrep& rows) {
        loops_.scatter(y_[std::size_t(g ^ i)].data(), result + base_[std::size_t(i)], width, runs(k, i),
                       orbitals, holes, orbitals_.count(i), rows.length());
      });
    }
  }

  void flush() {
    for (int j = 0; j < orbitals_.groups(); ++j) {
      const RowsOfIrrep& rows = rows_[std::size_t(j)];
      const int sector = rows.irrep ^ space_.target, length = rows.length();
      for (std::size_t part = 0; part < rows.columns.size(); ++part) {
        const auto [first, last] = rows.columns[part];
        for (std::int64_t b = first; b < last; b += locked) {
          const auto columns = std::size_t(std::min(last, b + locked) - b);
          const Real* y = y_[std::size_t(sector)].data() + (b - space_.beta.offset(sector)) * length;
          for (std::size_t c = 0; c < std::size_t(length); ++c) {
            if (rows.places[c] < 0) continue;
            const std::int64_t index = from_.rows()[std::size_t(rows.places[c])];
            Real* row = to_.row<Real>(to_.row_place(index), rows.irrep) + to_column(rows, part) + (b - first);
            const std::lock_guard lock(locks_[std::size_t(index) % row_locks]);
            loops_.add_strided(row, y + c, length, rows.signs[c], columns);
          }
        }
      }
    }
  }
  [[nodiscard]] std::int64_t to_column(const RowsOfIrrep& rows, std::size_t part) const {
    return &to_ == &from_ ? rows.column_places[part] : to_.column_place(rows.columns[part].first);
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
  std::array<RowsOfIrrep, max_groups> rows_;         // by irrep of the orbital
  std::array<std::vector<Real>, max_groups> x_, y_;  // by irrep of the column: [column + 1][run]
  // One sector of holes of beta electrons.
  int irrep_of_pair_ = 0, width_ = 0;
  std::array<int, max_groups> base_{};
  std::vector<std::int32_t> selected_;
  std::vector<Real> ones_, restricted_;
  // One batch.
  std::vector<Real> lines_, in_, in_minus_, out_, out_minus_;
};

template <class Real>
void OppositeSpin::apply(const Panel& x, Panel& t, std::int64_t first, std::int64_t last, int threads) const {
  if (first >= last || layouts_.empty()) return;
  std::vector<std::mutex> locks(row_locks);
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
