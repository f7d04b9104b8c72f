// Schwarz screening: which shell pairs and quartets of shells are computed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/sibling.hpp"
#include "chem/common/basis.hpp"
#include "chem/hf/accuracy.hpp"
#include "chem/hf/shell_group.hpp"

namespace outcore::chem {

/// Bounds Q_ij = sqrt(max |(ij|ij)|), so that |(ij|kl)| <= Q = Q_ij Q_kl (Haeser and Ahlrichs, J. Comput.
/// Chem. 10, 104 (1989)), the quartets (ij|kl) that are computed, and the list of tasks: shell pairs i >= j
/// that have such quartets. A task (i,j) stands for all quartets (ij|kl) with k <= i, l <= k (l <= j where k
/// = i). Tasks are ordered by falling cost, so that dynamic distribution ends evenly.
///
/// Quartets whose bound is below their limit are left out at random: a quartet is kept with probability p = Q
/// / limit, and its integrals then count 1 / p times, for others like it. So the omission gives no bias,
/// whatever the number and the signs of the integrals, and its scatter is known (EnergyError). The choice is
/// the same in each pass and at each process, as the labels of the shells determine it (Chance).
///
/// With a group of shells one quartet stands for its copies (ShellGroup): its integrals, and so their bound,
/// are multiplied by the number of copies. J and K are then sums over these quartets only; the caller
/// averages them over the operations of the group. Limits apply to all copies together, as they have the same
/// error.
class OUTCORE_SIBLING Screening {
 public:
  struct Task {
    std::uint16_t i, j;
    std::uint64_t integrals;  ///< in the quartets of this task, counted by whole shells
  };
  /// A quartet of a task.
  struct Quartet {
    std::uint16_t k, l;
    std::uint16_t copies;  ///< number of copies by symmetry, itself included
    double weight;         ///< factor of the integrals of each copy
  };

  /// Throws Error(EINVAL) unless threshold > 0. Uses `threads` threads. Limits are the threshold, or those of
  /// `accuracy` where they are larger.
  Screening(const Basis& basis, double threshold, int threads,
            std::shared_ptr<const Accuracy> accuracy = nullptr,
            std::shared_ptr<const ShellGroup> group = nullptr);

  [[nodiscard]] double threshold() const noexcept { return threshold_; }
  [[nodiscard]] double limit(int i, int j, int k, int l) const noexcept {
    return accuracy_ ? std::max(threshold_, accuracy_->limit(i, j, k, l)) : threshold_;
  }
  [[nodiscard]] double largest_limit() const noexcept {
    return accuracy_ ? std::max(threshold_, accuracy_->share() * accuracy_->largest()) : threshold_;
  }

  /// Calls use(quartet, bound) for the kept quartets of a task with this k, by falling bound, which is that
  /// of the weighted integrals of each copy. `rare` is rare(i, j). Skips most quartets with a bound below
  /// `least`.
  template <class Use>
  void quartets(int i, int j, int k, std::span<const Quartet> rare, double least, Use&& use) const {
    const double bra = bound(i, j);
    const double end = std::max(listed_from(), largest_limit() < least ? least : 0.0);
    for (auto l : partners(k)) {
      const double ours = bra * bound(k, l);
      if (ours < end) break;
      if (k == i && l > j) continue;
      const Quartet quartet = drawn(i, j, k, l, ours);
      if (quartet.weight > 0) use(quartet, quartet.weight * ours);
    }
    if (threshold_ < least && largest_limit() < least) return;
    for (const Quartet& each : rare)
      if (each.k == k) use(each, each.weight * bra * bound(k, each.l));
  }
  /// The quartets of a task that are kept although their bounds are far below any limit, by rising k.
  [[nodiscard]] std::vector<Quartet> rare(int i, int j) const;

  [[nodiscard]] double bound(int i, int j) const noexcept {
    return bounds_[std::size_t(i) * std::size_t(shells_) + std::size_t(j)];
  }
  /// The bound of two components (see Basis); bound(i, j) is the largest of these.
  [[nodiscard]] double component_bound(int a, int b) const noexcept {
    return component_bounds_[std::size_t(a) * components_ + std::size_t(b)];
  }
  /// Shells l <= k in order of falling bound(k, l).
  [[nodiscard]] std::span<const std::uint16_t> partners(int k) const noexcept {
    return {&partners_[std::size_t(k) * std::size_t(k + 1) / 2], std::size_t(k) + 1};
  }
  [[nodiscard]] const std::vector<Task>& tasks() const noexcept { return tasks_; }
  [[nodiscard]] std::uint64_t integrals() const noexcept { return integrals_; }
  /// Upper bound of the bytes that storing the values takes, labels included.
  [[nodiscard]] std::uint64_t stored_bytes_bound(const Accuracy& accuracy) const;

 private:
  /// Rarer quartets are drawn as a list, and not examined one after the other.
  static constexpr double listed_share = 0.5;

  [[nodiscard]] int order() const noexcept { return group_ ? group_->order() : 1; }
  [[nodiscard]] int copies(int i, int j, int k, int l) const noexcept {
    return group_ ? group_->copies(i, j, k, l) : 1;
  }
  /// The least bound of a copy of quartets that are listed.
  [[nodiscard]] double listed_from() const noexcept { return threshold_ * listed_share / order(); }
  /// A quartet whose copies each have this bound; its weight is 0 if it is left out.
  [[nodiscard]] Quartet drawn(int i, int j, int k, int l, double bound) const noexcept {
    const int copies = this->copies(i, j, k, l);
    const double ours = copies * bound, least = limit(i, j, k, l);
    const double weight = copies == 0 ? 0.0 : ours >= least ? 1.0 : random_weight(i, j, k, l, ours / least);
    return {std::uint16_t(k), std::uint16_t(l), std::uint16_t(copies), weight};
  }
  [[nodiscard]] static double random_weight(int i, int j, int k, int l, double probability) noexcept;
  void compute_bounds(const Basis& basis, int threads);
  void list_pairs();
  void list_tasks(const Basis& basis);

  double threshold_;
  std::shared_ptr<const Accuracy> accuracy_;
  std::shared_ptr<const ShellGroup> group_;
  int shells_;
  std::size_t components_;
  std::vector<int> sizes_;
  std::vector<double> bounds_, component_bounds_;
  std::vector<std::uint16_t> partners_;
  std::vector<Quartet> pairs_;  // k >= l, by falling bound, which is stored as their weight
  std::vector<double> sums_;    // for each pair: sum of the bounds from it on
  std::vector<Task> tasks_;
  std::uint64_t integrals_ = 0;
};

}  // namespace outcore::chem
