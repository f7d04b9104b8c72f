// Schwarz screening: which shell pairs and quartets of shells are worth computing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "outcore/chem/accuracy.hpp"
#include "outcore/chem/basis.hpp"

namespace outcore::chem {

/// Bounds Q_ij = sqrt(max |(ij|ij)|), so that |(ij|kl)| <= Q_ij Q_kl (Haeser and Ahlrichs, J. Comput. Chem.
/// 10, 104 (1989)), and the list of tasks: the shell pairs i >= j whose bound with the largest other reaches
/// the threshold. A task (i,j) stands for all quartets (ij|kl) with k <= i, l <= k (l <= j where k = i) that
/// do. Tasks are ordered by falling cost, so that dynamic distribution ends evenly.
class Screening {
 public:
  struct Task {
    std::uint16_t i, j;
    std::uint64_t integrals;  ///< in the quartets of this task that reach the threshold, by whole shells
  };

  /// Throws Error(EINVAL) unless threshold > 0. Uses `threads` threads. With `accuracy`, quartets all of
  /// whose integrals are below half their step are left out, too.
  Screening(const Basis& basis, double threshold, int threads,
            std::shared_ptr<const Accuracy> accuracy = nullptr);

  [[nodiscard]] double threshold() const noexcept { return threshold_; }
  /// Quartets with a smaller bound are left out.
  [[nodiscard]] double least(int i, int j, int k, int l) const noexcept {
    return accuracy_ ? std::max(threshold_, accuracy_->step(i, j, k, l) / 2) : threshold_;
  }
  [[nodiscard]] double bound(int i, int j) const noexcept {
    return bounds_[std::size_t(i) * std::size_t(shells_) + std::size_t(j)];
  }
  /// The same for two components (see Basis); bound(i, j) is the largest of them.
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
  void compute_bounds(const Basis& basis, int threads);
  void list_tasks(const Basis& basis);

  double threshold_;
  std::shared_ptr<const Accuracy> accuracy_;
  int shells_;
  std::size_t components_;
  std::vector<int> sizes_;
  std::vector<double> bounds_, component_bounds_;
  std::vector<std::uint16_t> partners_;
  std::vector<Task> tasks_;
  std::uint64_t integrals_ = 0;
};

}  // namespace outcore::chem
