#include "chem/ci/opposite_spin.hpp"

#include <algorithm>
#include <atomic>

#include "base/thread_team.hpp"
#include "chem/ci/hole_rows.hpp"

namespace outcore::chem::ci {
namespace {

constexpr std::int64_t locked_columns = 512;  // of rows of one irrep that are added to under one lock
constexpr std::size_t lock_count = 1024;      // they share these locks

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
    const double lines = double(space_->beta_holes.offset(g + 1) - space_->first_beta_hole(g, hole));
    double restricted = 0;
    for (int q : layout.q) restricted += !occupied(hole, q);
    sum.pairs += lines * (double(layout.plus()) * layout.plus() + double(layout.minus) * layout.minus);
    sum.restricted += lines * restricted * restricted;
  }
  return sum;
}

/// The work and the memory of one thread.
template <class Real>
class OppositeSpin::Task {
 public:
  Task(const OppositeSpin& of, const Panel& x, Panel& t, std::vector<std::mutex>& locks)
      : of_(of),
        space_(*of.space_),
        loops_(run_loops<Real>()),
        matrices_(of.matrices<Real>()),
        from_(x),
        to_(t),
        locks_(locks),
        rows_(space_, of.beta_runs_) {
    int most = 0;
    for (const PairLayout& layout : of.layouts_) most = std::max(most, layout.size());
    for (int g = 0; g < space_.orbitals.groups(); ++g) sums_[std::size_t(g)].resize(rows_.size_of_copy(g));
    for (auto* lines : {&lines_, &in_, &out_}) lines->resize(std::size_t(line_stride * most));
  }

  void run(std::int64_t index) {
    all_orbitals_ = of_.takes_pairs(of_.operations(index));
    rows_.copy(from_, space_.alpha_holes[std::size_t(index)], all_orbitals_);
    for (int j = 0; j < space_.orbitals.groups(); ++j) clear(rows_.rows(j));
    for (int g = 0; g < space_.orbitals.groups(); ++g) sector(g);
    for (int j = 0; j < space_.orbitals.groups(); ++j) flush(rows_.rows(j));
  }

 private:
  void clear(const RowsOfIrrep<Real>& rows) {
    const int sector = rows_.sector(rows);
    Real* sums = sums_[std::size_t(sector)].data();
    const auto length = std::size_t(rows.length());
    std::fill_n(sums + std::size_t(rows.first - space_.beta.offset(sector)) * length,
                std::size_t(rows.last - rows.first) * length, Real(0));
    std::fill_n(sums + std::size_t(space_.beta.count(sector)) * length, length, Real(0));
  }

  void sector(int g) {
    const std::int64_t first = space_.first_beta_hole(g, rows_.hole());
    const std::int64_t last = space_.beta_holes.offset(g + 1);
    if (first == last) return;
    rows_.find_pairs(g, of_.layouts_, all_orbitals_, pairs_);
    if (pairs_.count == 0) return;
    const PairLayout& layout = of_.layouts_[std::size_t(pairs_.irrep)];
    if (!all_orbitals_) restrict_to_empty(layout);
    for (std::int64_t k = first, end; k < last; k = end) {
      end = std::min(last, k + batch_holes);
      rows_.gather(pairs_, g, k, end, true, lines_.data());
      all_orbitals_ ? multiply_pairs(layout, int(end - k)) : multiply(int(end - k));
      rows_.scatter(pairs_, g, k, end, lines_.data(), sums_);
    }
  }

  /// The integrals of the alpha orbitals that the hole leaves empty.
  void restrict_to_empty(const PairLayout& layout) {
    const auto size = std::size_t(pairs_.count);
    ones_.assign(size, Real(1));
    restricted_.resize(size * size);
    const Real* full = matrices_[std::size_t(pairs_.irrep)].full.data();
    for (std::size_t u = 0; u < size; ++u)
      loops_.select(&restricted_[u * size],
                    full + std::size_t(pairs_.selected[u]) * std::size_t(layout.size()),
                    pairs_.selected.data(), ones_.data(), pairs_.count);
  }

  void multiply(int holes) {
    lines_.swap(in_);
    of_.blas_.multiply(pairs_.count, holes, pairs_.count, restricted_.data(), pairs_.count, in_.data(),
                       int(line_stride), lines_.data(), int(line_stride));
  }

  void multiply_pairs(const PairLayout& layout, int holes) {
    const auto& matrix = matrices_[std::size_t(pairs_.irrep)];
    const int plus = layout.plus(), minus = layout.minus, stride = int(line_stride);
    const auto line_of = [](Aligned<Real>& lines, std::int64_t pair) {
      return &lines[std::size_t(pair * line_stride)];
    };
    const auto left = [&](int c) { return line_of(lines_, layout.left[std::size_t(c)]); };
    const auto right = [&](int c) { return line_of(lines_, layout.right[std::size_t(c)]); };
    // Lines of sums, then of differences.
    for (int c = 0; c < plus; ++c)
      loops_.combine(left(c), right(c), line_of(in_, c), c < minus ? line_of(in_, plus + c) : nullptr,
                     std::size_t(holes));
    of_.blas_.multiply(plus, holes, plus, matrix.plus.data(), plus, in_.data(), stride, out_.data(), stride);
    if (minus > 0)
      of_.blas_.multiply(minus, holes, minus, matrix.minus.data(), minus, line_of(in_, plus), stride,
                         line_of(out_, plus), stride);
    for (int c = 0; c < minus; ++c)
      loops_.combine(line_of(out_, c), line_of(out_, plus + c), left(c), right(c), std::size_t(holes));
    for (int c = minus; c < plus; ++c) std::copy_n(line_of(out_, c), holes, left(c));
  }

  void flush(const RowsOfIrrep<Real>& rows) {
    std::array<Real*, max_orbitals> targets;
    const int sector = rows_.sector(rows), length = rows.length();
    const std::int64_t offset = space_.beta.offset(sector);
    if (rows.first == rows.last || length == 0) return;
    for (std::size_t c = 0; c < std::size_t(length); ++c)
      targets[c] =
          rows.indices[c] < 0 ? nullptr : to_.at<Real>(to_.row_place(rows.indices[c]), rows.first - offset);
    for (std::int64_t b = rows.first, end; b < rows.last; b = end) {
      end = std::min(rows.last, ((b - offset) / locked_columns + 1) * locked_columns + offset);
      const auto number = std::size_t((b - offset) / locked_columns * max_groups + rows.irrep);
      const std::lock_guard lock(locks_[number % lock_count]);
      loops_.add_interleaved(targets.data(), rows.signs.data(),
                             sums_[std::size_t(sector)].data() + (b - offset) * length, length,
                             std::size_t(end - b));
      for (Real*& target : std::span(targets).first(std::size_t(length)))
        if (target) target += end - b;
    }
  }

  const OppositeSpin& of_;
  const Space& space_;
  const RunLoops<Real>& loops_;
  const std::vector<PairMatrix<Real>>& matrices_;
  const Panel& from_;
  Panel& to_;
  std::vector<std::mutex>& locks_;

  // One hole of alpha electrons.
  HoleRows<Real> rows_;
  bool all_orbitals_ = false;                   // with sums and differences of pairs
  std::array<Aligned<Real>, max_groups> sums_;  // as the copies of rows
  // One sector of beta holes.
  PairsOfHole pairs_;
  std::vector<Real> ones_;
  Aligned<Real> restricted_;
  // One batch.
  Aligned<Real> lines_, in_, out_;  // [pair][hole]
};

template <class Real>
void OppositeSpin::apply(const Panel& x, Panel& t, std::int64_t first, std::int64_t last, int threads) const {
  if (first >= last || layouts_.empty()) return;
  std::vector<std::mutex> locks(lock_count);
  std::atomic<std::int64_t> next{first};  // in folded spaces the first are the largest
  const int team = int(std::clamp<std::int64_t>(last - first, 1, std::max(threads, 1)));
  in_team(team, [&](int) {
    Task<Real> task(*this, x, t, locks);
    for (std::int64_t k; (k = next++) < last;) task.run(k);
  });
}

template void OppositeSpin::apply<double>(const Panel&, Panel&, std::int64_t, std::int64_t, int) const;
template void OppositeSpin::apply<float>(const Panel&, Panel&, std::int64_t, std::int64_t, int) const;

}  // namespace outcore::chem::ci
