#include "outcore/chem/screening.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <numeric>

#include "chem/packing.hpp"
#include "outcore/error.hpp"
#include "thread_team.hpp"

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
                     std::shared_ptr<const Accuracy> accuracy)
    : threshold_(threshold),
      accuracy_(std::move(accuracy)),
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

  // Functions among the first partners of each k: the size of a task by bisection instead of by enumeration.
  std::vector<std::uint64_t> running(partners_.size());
  for (int k = 0; k < shells_; ++k) {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; auto l : partners(k))
      running[std::size_t(k) * std::size_t(k + 1) / 2 + at++] = sum += std::uint64_t(basis.size(l));
  }
  for (int i = 0; i < shells_; ++i) {
    for (int j = 0; j <= i; ++j) {
      const double bra = bound(i, j);
      std::uint64_t columns = 0;
      for (int k = 0; k <= i; ++k) {
        const auto list = partners(k);
        const auto end = std::partition_point(list.begin(), list.end(),
                                              [&](auto l) { return bra * bound(k, l) >= threshold_; });
        if (end == list.begin()) continue;
        if (k < i && !accuracy_) {
          columns += std::uint64_t(basis.size(k)) *
                     running[std::size_t(k) * std::size_t(k + 1) / 2 + std::size_t(end - list.begin()) - 1];
        } else {
          for (auto at = list.begin(); at != end; ++at)
            if ((k < i || *at <= j) && bra * bound(k, *at) >= least(i, j, k, *at))
              columns += std::uint64_t(basis.size(k) * basis.size(*at));
        }
      }
      if (columns == 0) continue;
      tasks_.push_back(
          {std::uint16_t(i), std::uint16_t(j), columns * std::uint64_t(basis.size(i) * basis.size(j))});
      integrals_ += tasks_.back().integrals;
    }
  }
  std::stable_sort(tasks_.begin(), tasks_.end(),
                   [](const Task& a, const Task& b) { return a.integrals > b.integrals; });
}

std::uint64_t Screening::stored_bytes_bound(const Accuracy& accuracy) const {
  std::uint64_t total = 0;
  for (const Task& task : tasks_) {
    const double bra = bound(task.i, task.j);
    const auto bra_size = std::uint64_t(sizes_[task.i] * sizes_[task.j]);
    for (int k = 0; k <= task.i; ++k) {
      std::uint64_t row_bytes = 0, listed = 0;
      for (auto l : partners(k)) {
        const double largest = bra * bound(k, l);
        if (largest < threshold_) break;
        if (k == task.i && l > task.j) continue;
        const int width = packed_form(largest, accuracy.step(task.i, task.j, k, l)).width;
        if (width == 0) continue;
        row_bytes += std::uint64_t(sizes_[l]) * std::uint64_t(width);
        ++listed;
      }
      if (listed > 0)
        total += bra_size * std::uint64_t(sizes_[std::size_t(k)]) * row_bytes + sizeof(PackedSlab) +
                 3 * listed + 2 * packed_alignment;
    }
  }
  return total;
}

}  // namespace outcore::chem
