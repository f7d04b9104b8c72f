#include "chem/hf/screening.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <numeric>

#include "base/thread_team.hpp"
#include "chem/hf/chance.hpp"
#include "chem/hf/packing.hpp"
#include "outcore/error.hpp"

namespace outcore::chem {
namespace {

/// sqrt(max |(ab|ab)|) over the functions of two components.
double diagonal_bound(const Basis& basis, const Basis::Component& a, const Basis::Component& b, double* out,
                      double* work) {
  double largest = 0;
  if (basis.integrals(a.number, b.number, a.number, b.number, out, work)) {
    const auto pairs = std::size_t(a.size * b.size);
    for (std::size_t at = 0; at < pairs; ++at) largest = std::max(largest, std::abs(out[at * pairs + at]));
  }
  return std::sqrt(largest);
}

}  // namespace

Screening::Screening(const Basis& basis, double threshold, int threads,
                     std::shared_ptr<const Accuracy> accuracy, std::shared_ptr<const ShellGroup> group)
    : threshold_(threshold),
      accuracy_(std::move(accuracy)),
      group_(std::move(group)),
      shells_(basis.shells()),
      components_(std::size_t(basis.component_count())) {
  if (!(threshold > 0))
    throw Error(EINVAL, {.attempted = "integral screening",
                         .detail = "the threshold must be positive, not " + std::to_string(threshold)});
  for (int shell = 0; shell < shells_; ++shell) sizes_.push_back(basis.size(shell));
  compute_bounds(basis, threads);
  list_tasks(basis);
}

void Screening::compute_bounds(const Basis& basis, int threads) {
  component_bounds_.assign(components_ * components_, 0.0);
  std::atomic<int> next{0};
  const auto work = [&](int) {
    std::vector<double> out(std::size_t(std::pow(basis.largest_shell(), 4))), space(basis.work_size());
    for (int i; (i = next.fetch_add(1)) < shells_;)
      for (int j = 0; j <= i; ++j)
        for (const auto& a : basis.components(i))
          for (const auto& b : basis.components(j)) {
            const double value = diagonal_bound(basis, a, b, out.data(), space.data());
            component_bounds_[std::size_t(a.number) * components_ + std::size_t(b.number)] = value;
            component_bounds_[std::size_t(b.number) * components_ + std::size_t(a.number)] = value;
          }
  };
  in_team(threads, work);

  const auto n = std::size_t(shells_);
  bounds_.assign(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (const auto& a : basis.components(int(i)))
        for (const auto& b : basis.components(int(j)))
          bounds_[i * n + j] = std::max(bounds_[i * n + j], component_bound(a.number, b.number));
}

void Screening::list_tasks(const Basis& basis) {
  partners_.resize(std::size_t(shells_) * std::size_t(shells_ + 1) / 2);
  for (int k = 0; k < shells_; ++k) {
    auto* list = &partners_[std::size_t(k) * std::size_t(k + 1) / 2];
    std::iota(list, list + k + 1, std::uint16_t(0));
    std::stable_sort(list, list + k + 1, [&](auto a, auto b) { return bound(k, a) > bound(k, b); });
  }

  list_pairs();

  // Functions among the first partners of each k: the size of a task by bisection instead of by enumeration.
  std::vector<std::uint64_t> running(partners_.size());
  for (int k = 0; k < shells_; ++k) {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; auto l : partners(k))
      running[std::size_t(k) * std::size_t(k + 1) / 2 + at++] = sum += std::uint64_t(basis.size(l));
  }
  for (int i = 0; i < shells_; ++i) {
    for (int j = 0; j <= i; ++j) {
      if (group_ && !group_->stands(i, j)) continue;
      const double bra = bound(i, j);
      std::uint64_t columns = 0;
      for (int k = 0; k <= i; ++k) {
        const auto list = partners(k);
        auto from = list.begin();
        if (k < i && !accuracy_ && !group_) {
          from =
              std::partition_point(from, list.end(), [&](auto l) { return bra * bound(k, l) >= threshold_; });
          if (from != list.begin())
            columns +=
                std::uint64_t(basis.size(k)) *
                running[std::size_t(k) * std::size_t(k + 1) / 2 + std::size_t(from - list.begin()) - 1];
        }
        for (; from != list.end() && bra * bound(k, *from) >= listed_from(); ++from)
          if ((k < i || *from <= j) && drawn(i, j, k, *from, bra * bound(k, *from)).weight > 0)
            columns += std::uint64_t(basis.size(k) * basis.size(*from));
      }
      for (const Quartet& each : rare(i, j))
        columns += std::uint64_t(basis.size(each.k) * basis.size(each.l));
      if (columns == 0) continue;
      tasks_.push_back(
          {std::uint16_t(i), std::uint16_t(j), columns * std::uint64_t(basis.size(i) * basis.size(j))});
      integrals_ += tasks_.back().integrals;
    }
  }
  std::stable_sort(tasks_.begin(), tasks_.end(),
                   [](const Task& a, const Task& b) { return a.integrals > b.integrals; });
}

void Screening::list_pairs() {
  for (int k = 0; k < shells_; ++k)
    for (auto l : partners(k))
      if (const double value = bound(k, l); value > 0) pairs_.push_back({std::uint16_t(k), l, 1, value});
  std::stable_sort(pairs_.begin(), pairs_.end(),
                   [](const Quartet& a, const Quartet& b) { return a.weight > b.weight; });
  sums_.resize(pairs_.size());
  double sum = 0;
  for (std::size_t at = pairs_.size(); at-- > 0;) sums_[at] = sum += pairs_[at].weight;
}

double Screening::random_weight(int i, int j, int k, int l, double probability) noexcept {
  return Chance(Chance::Purpose::screening, i, j, k, l).next() < probability ? 1 / probability : 0.0;
}

// Most pairs have so small a probability that a loop over them would take too long. Instead, events of a
// Poisson process are drawn, with the rate max_rate * p for a pair of probability p. Some of them are
// accepted, so that the rate becomes -log(1 - p): then the probability of at least one event is p.
std::vector<Screening::Quartet> Screening::rare(int i, int j) const {
  std::vector<Quartet> found;
  const double bra = bound(i, j);
  if (!(bra > 0) || (group_ && !group_->stands(i, j))) return found;
  const double max_rate = -std::log1p(-listed_share) / listed_share;
  const double most = bra * order();  // times the bound of a pair: the bound of the largest number of copies
  const auto below = std::size_t(
      std::partition_point(pairs_.begin(), pairs_.end(),
                           [&](const Quartet& pair) { return bra * pair.weight >= listed_from(); }) -
      pairs_.begin());
  if (below == pairs_.size()) return found;
  Chance chance(Chance::Purpose::rare, i, j);
  for (double at = sums_[below];;) {
    at -= chance.wait() * threshold_ / (most * max_rate);
    if (!(at > 0)) break;
    const auto after = std::partition_point(sums_.begin() + std::ptrdiff_t(below), sums_.end(),
                                            [&](double sum) { return sum >= at; });
    const Quartet& pair = pairs_[std::size_t(after - sums_.begin()) - 1];
    const double taken = chance.next();
    if (pair.k > i || (pair.k == i && pair.l > j)) continue;
    const int copies = this->copies(i, j, pair.k, pair.l);
    const double limit = this->limit(i, j, pair.k, pair.l), value = copies * bra * pair.weight;
    if (taken * max_rate * most * pair.weight / threshold_ < -std::log1p(-value / limit))
      found.push_back({pair.k, pair.l, std::uint16_t(copies), limit / value});
  }
  std::ranges::sort(found, {}, [](const Quartet& each) { return std::pair(each.k, each.l); });
  const auto [from, to] =
      std::ranges::unique(found, {}, [](const Quartet& each) { return std::pair(each.k, each.l); });
  found.erase(from, to);
  return found;
}

std::uint64_t Screening::stored_bytes_bound(const Accuracy& accuracy) const {
  std::uint64_t total = 0;
  for (const Task& task : tasks_) {
    const auto bra_size = std::uint64_t(sizes_[task.i] * sizes_[task.j]);
    const auto drawn = rare(task.i, task.j);
    for (int k = 0; k <= task.i; ++k) {
      std::uint64_t row_bytes = 0, listed = 0;
      quartets(task.i, task.j, k, drawn, 0, [&](const Quartet& quartet, double bound) {
        const int l = quartet.l;
        const int width = packed_form(quartet.copies * bound, accuracy.step(task.i, task.j, k, l)).width;
        row_bytes += std::uint64_t(sizes_[std::size_t(l)]) * std::uint64_t(width);
        ++listed;
      });
      if (listed > 0)
        total += bra_size * std::uint64_t(sizes_[std::size_t(k)]) * row_bytes + sizeof(PackedSlab) +
                 3 * listed + 2 * packed_alignment;
    }
  }
  return total;
}

}  // namespace outcore::chem
