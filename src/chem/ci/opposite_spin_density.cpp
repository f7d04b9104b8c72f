#include <algorithm>
#include <atomic>

#include "base/thread_team.hpp"
#include "chem/ci/hole_rows.hpp"
#include "chem/ci/opposite_spin.hpp"

namespace outcore::chem::ci {

/// The work and the memory of one thread. Products in single precision are summed in double precision, too.
template <class Real>
class OppositeSpin::DensityTask {
 public:
  DensityTask(const OppositeSpin& of, const Panel& bra, const Panel& ket)
      : of_(of),
        space_(*of.space_),
        bra_(bra),
        ket_(ket),
        bra_rows_(space_, of.beta_runs_),
        ket_rows_(space_, of.beta_runs_) {
    int most = 0;
    for (const PairLayout& layout : of.layouts_) {
      most = std::max(most, layout.size());
      sums_.emplace_back(std::size_t(layout.size()) * std::size_t(layout.size()));
    }
    gathered_.resize(std::size_t(line_stride * most));
    for (auto* lines : {&left_, &right_}) lines->resize(std::size_t(line_stride * most));
  }

  void run(std::int64_t index) {
    const std::uint64_t hole = space_.alpha_holes[std::size_t(index)];
    bra_rows_.copy(bra_, hole, false);
    if (&bra_ != &ket_) ket_rows_.copy(ket_, hole, false);
    const auto& ket_rows = &bra_ == &ket_ ? bra_rows_ : ket_rows_;
    for (int g = 0; g < space_.orbitals.groups(); ++g) {
      const std::int64_t first = space_.first_beta_hole(g, hole);
      const std::int64_t last = space_.beta_holes.offset(g + 1);
      if (first == last) continue;
      bra_rows_.find_pairs(g, of_.layouts_, false, pairs_);
      const auto count = std::size_t(pairs_.count);
      if (count == 0) continue;
      product_.assign(count * count, 0);
      for (std::int64_t k = first, end; k < last; k = end) {
        end = std::min(last, k + batch_holes);
        gather(bra_rows_, g, k, end, true, left_);
        gather(ket_rows, g, k, end, false, right_);
        of_.blas_.add_products(pairs_.count, pairs_.count, int(end - k), left_.data(), int(line_stride),
                               right_.data(), int(line_stride), product_.data(), pairs_.count);
      }
      double* sums = sums_[std::size_t(pairs_.irrep)].data();
      const auto size = std::size_t(of_.layouts_[std::size_t(pairs_.irrep)].size());
      for (std::size_t u = 0; u < count; ++u)
        for (std::size_t t = 0; t < count; ++t)
          sums[std::size_t(pairs_.selected[u]) * size + std::size_t(pairs_.selected[t])] +=
              product_[u * count + t];
    }
  }

  /// Adds to all[p][q][r][s].
  void add_to(double* all) const {
    const auto n = std::size_t(space_.orbitals.count());
    for (std::size_t g = 0; g < sums_.size(); ++g) {
      const PairLayout& layout = of_.layouts_[g];
      const double* sum = sums_[g].data();
      for (std::size_t u = 0; u < std::size_t(layout.size()); ++u)
        for (std::size_t t = 0; t < std::size_t(layout.size()); ++t) {
          const auto p = std::size_t(layout.q[u]), r = std::size_t(layout.s[u]);
          const auto q = std::size_t(layout.q[t]), s = std::size_t(layout.s[t]);
          all[((p * n + q) * n + r) * n + s] += *sum++;
        }
    }
  }

 private:
  void gather(const HoleRows<Real>& rows, int g, std::int64_t first, std::int64_t last, bool halves,
              Aligned<double>& lines) {
    if constexpr (sizeof(Real) == sizeof(double)) {
      rows.gather(pairs_, g, first, last, halves, lines.data());
    } else {
      rows.gather(pairs_, g, first, last, halves, gathered_.data());
      std::copy_n(gathered_.data(), pairs_.count * line_stride, lines.data());
    }
  }

  const OppositeSpin& of_;
  const Space& space_;
  const Panel& bra_;
  const Panel& ket_;
  HoleRows<Real> bra_rows_, ket_rows_;
  PairsOfHole pairs_;
  Aligned<Real> gathered_;
  Aligned<double> left_, right_, product_;
  std::vector<std::vector<double>> sums_;  // by irrep of the pair: [bra][ket]
};

template <class Real>
void OppositeSpin::add_density(const Panel& bra, const Panel& ket, double* sums, std::int64_t first,
                               std::int64_t last, int threads) const {
  if (first >= last || layouts_.empty()) return;
  std::atomic<std::int64_t> next{first};
  std::mutex adding;
  in_team(int(std::clamp<std::int64_t>(last - first, 1, std::max(threads, 1))), [&](int) {
    DensityTask<Real> task(*this, bra, ket);
    for (std::int64_t k; (k = next++) < last;) task.run(k);
    const std::lock_guard lock(adding);
    task.add_to(sums);
  });
}

template void OppositeSpin::add_density<double>(const Panel&, const Panel&, double*, std::int64_t,
                                                std::int64_t, int) const;
template void OppositeSpin::add_density<float>(const Panel&, const Panel&, double*, std::int64_t,
                                               std::int64_t, int) const;

}  // namespace outcore::chem::ci
