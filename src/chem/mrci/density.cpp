#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "chem/common/aligned.hpp"
#include "chem/mrci/kernel.hpp"

namespace outcore::chem::mrci {
namespace {

struct Sums {
  double* first;  ///< [n][n], for the first spin of a hole
  double* second;
  int orbitals;

  void add(double* to, int p, int q, double value) const noexcept {
    const auto n = std::size_t(orbitals);
    to[std::size_t(p) * n + std::size_t(q)] += value;
    if (p != q) to[std::size_t(q) * n + std::size_t(p)] += value;
  }
};

/// Adds the contributions of pairs, whose rows are [row][columns].
void add_rows(const OppositePairs& pairs, const Reach& reach, const double* panel, double weight,
              const Sums& sums) {
  std::vector<int> numbers;
  for (const Rows& each : reach.rows)
    for (int r = 0; r < each.count; ++r) numbers.push_back(each.first + r);
  const auto columns = std::size_t(reach.columns);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      const auto a = std::size_t(numbers[i]), b = std::size_t(numbers[j]);
      const bool same_q = pairs.firsts[a] == pairs.firsts[b], same_s = pairs.seconds[a] == pairs.seconds[b];
      if (!same_q && !same_s) continue;
      double sum = 0;
      for (std::size_t c = 0; c < columns; ++c) sum += panel[i * columns + c] * panel[j * columns + c];
      if (same_s) sums.add(sums.first, pairs.firsts[a], pairs.firsts[b], weight * sum);
      if (same_q) sums.add(sums.second, pairs.seconds[a], pairs.seconds[b], weight * sum);
    }
}

/// The row of the pair with both orbitals exchanged.
std::vector<std::int32_t> exchanged(const OppositePairs& pairs, int orbitals) {
  const auto n = std::size_t(orbitals), count = pairs.firsts.size();
  std::vector<std::int32_t> number(n * n, -1), found(count);
  for (std::size_t r = 0; r < count; ++r)
    number[std::size_t(pairs.firsts[r]) * n + std::size_t(pairs.seconds[r])] = std::int32_t(r);
  for (std::size_t r = 0; r < count; ++r)
    found[r] = number[std::size_t(pairs.seconds[r]) * n + std::size_t(pairs.firsts[r])];
  return found;
}

}  // namespace

template <class Visit>
void Kernel::each_panel(const HoleTask& task, std::span<const double> x,
                        std::span<const std::int64_t> offsets, const Visit& visit) const {
  const Holes& of = holes_.at(std::size_t(task.holes));
  if (!is_opposite(of.part)) return;
  const Space& space = *space_;
  const Reacher reacher(space, pairs_);
  Reach reach;
  Aligned<double> panel;
  const auto gather_all = [&](std::size_t size) {
    panel.assign(size, 0.0);
    for (const PanelSegment& each : reach.segments) {
      const std::int64_t at = offsets[std::size_t(each.record)];
      const Record& record = space.record(each.record);
      if (at < 0 || at + record.size > std::int64_t(x.size()))
        throw std::out_of_range("a record of the task is not there");
      gather(each, space.externals(), record.irrep, x.data() + at, panel.data(), reach.columns);
    }
  };
  for (std::int64_t i = task.first; i < task.last; ++i) {
    const Hole& hole = of.holes.at(std::size_t(i));
    const bool own = space.parity() != 0 && hole.first == hole.second &&
                     (of.part == Part::opposite || of.part == Part::opposite_both);
    const double weight = own ? 0.5 : 1.0;
    if (is_line(of.part)) {
      reach.clear(0, of.irrep);
      reacher.add_line(of, hole, 0, reach);
      gather_all(pairs_.opposite[std::size_t(of.irrep)].firsts.size());
      visit(of, reach, panel.data(), weight);
      continue;
    }
    for (int g = 0; g < space.externals().groups(); ++g) {
      reacher.find(of, hole, g, reach);
      if (reach.row_count == 0) continue;
      gather_all(std::size_t(reach.row_count) * std::size_t(reach.columns));
      visit(of, reach, panel.data(), weight);
    }
  }
}

void Kernel::density(const HoleTask& task, std::span<const double> x, std::span<const std::int64_t> offsets,
                     double* alpha, double* beta) const {
  const int n = space_->orbitals();
  double* const other = space_->parity() != 0 ? alpha : beta;
  Aligned<double> dense(std::size_t(n) * std::size_t(n)), turned(dense.size());
  each_panel(task, x, offsets, [&](const Holes& of, const Reach& reach, const double* panel, double weight) {
    const Sums sums{of.swapped ? other : alpha, of.swapped ? alpha : other, n};
    const OppositePairs& pairs = pairs_.opposite[std::size_t(reach.irrep)];
    if (!is_line(of.part)) {
      add_rows(pairs, reach, panel, weight, sums);
      return;
    }
    std::fill(dense.begin(), dense.end(), 0.0);
    std::fill(turned.begin(), turned.end(), 0.0);
    const double scale = std::sqrt(weight);
    for (std::size_t r = 0; r < pairs.firsts.size(); ++r) {
      const int p = pairs.firsts[r], q = pairs.seconds[r];
      dense[std::size_t(p * n + q)] = turned[std::size_t(q * n + p)] = scale * panel[r];
    }
    blas_.add_products<double>(n, n, n, dense.data(), n, dense.data(), n, sums.first, n);
    blas_.add_products<double>(n, n, n, turned.data(), n, turned.data(), n, sums.second, n);
  });
}

double Kernel::exchange(const HoleTask& task, std::span<const double> x,
                        std::span<const std::int64_t> offsets) const {
  double total = 0;
  std::vector<std::int32_t> partners, rows;
  int irrep = -1;
  each_panel(task, x, offsets, [&](const Holes& of, const Reach& reach, const double* panel, double weight) {
    if (reach.irrep != irrep) {
      irrep = reach.irrep;
      partners = exchanged(pairs_.opposite[std::size_t(irrep)], space_->orbitals());
    }
    double sum = 0;
    if (is_line(of.part)) {
      for (std::size_t r = 0; r < partners.size(); ++r)
        if (partners[r] >= 0) sum += panel[r] * panel[partners[r]];
    } else {
      rows.assign(partners.size(), -1);
      std::int32_t row = 0;
      for (const Rows& each : reach.rows)
        for (int r = 0; r < each.count; ++r) rows[std::size_t(each.first + r)] = row++;
      const auto columns = std::size_t(reach.columns);
      for (std::size_t r = 0; r < partners.size(); ++r) {
        const std::int32_t other = partners[r] < 0 ? -1 : rows[std::size_t(partners[r])];
        if (rows[r] < 0 || other < 0) continue;
        const double *mine = panel + std::size_t(rows[r]) * columns,
                     *theirs = panel + std::size_t(other) * columns;
        for (std::size_t c = 0; c < columns; ++c) sum += mine[c] * theirs[c];
      }
    }
    total += weight * sum;
  });
  return space_->parity() != 0 ? 2 * total : total;
}

}  // namespace outcore::chem::mrci
