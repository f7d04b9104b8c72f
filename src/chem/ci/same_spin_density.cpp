#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/thread_team.hpp"
#include "chem/ci/same_spin.hpp"
#include "chem/common/aligned.hpp"

namespace outcore::chem::ci {

/// The work and the memory of one thread. Products in single precision are summed in double precision, too.
template <class Real>
class SameSpin::DensityTask {
 public:
  DensityTask(const SameSpin& of, const Panel& bra, const Panel& ket) : of_(of), bra_(bra), ket_(ket) {
    for (const SamePairs& pairs : of.orbital_pairs_)
      sums_.emplace_back(std::size_t(pairs.size()) * std::size_t(pairs.size()));
  }

  void run(const Slab& slab) {
    const int sector = slab.irrep ^ of_.target_;
    rows_ = std::size_t(slab.last - slab.first);
    turn(bra_, slab, bra_columns_);
    if (&bra_ != &ket_) turn(ket_, slab, ket_columns_);
    for (std::size_t l = 0; l < of_.irreps_.size(); ++l) string(l, of_.irreps_[l] ^ sector);
  }

  /// Adds to all[p][q][r][s].
  void add_to(double* all) const {
    for (std::size_t g = 0; g < sums_.size(); ++g) {
      const SamePairs& pairs = of_.orbital_pairs_[g];
      const double* sum = sums_[g].data();
      for (std::size_t t = 0; t < std::size_t(pairs.size()); ++t)
        for (std::size_t u = 0; u < std::size_t(pairs.size()); ++u, ++sum) {
          const int p = pairs.q[t], r = pairs.s[t], q = pairs.q[u], s = pairs.s[u];
          at(all, p, q, r, s) += *sum;
          at(all, r, q, p, s) -= *sum;
          at(all, p, s, r, q) -= *sum;
          at(all, r, s, p, q) += *sum;
        }
    }
  }

 private:
  [[nodiscard]] double& at(double* all, int p, int q, int r, int s) const {
    const auto n = std::size_t(of_.orbitals_);
    return all[((std::size_t(p) * n + std::size_t(q)) * n + std::size_t(r)) * n + std::size_t(s)];
  }

  void turn(const Panel& panel, const Slab& slab, Aligned<double>& columns) {
    const auto count = std::size_t(of_.strings_->count(slab.irrep ^ of_.target_));
    columns.resize(count * rows_);
    const auto transpose = [&](Real* to) {
      const auto from = panel.home<Real>(slab.irrep);
      run_loops<Real>().transpose(to, rows_, from.first + slab.first * from.stride, std::size_t(from.stride),
                                  rows_, count);
    };
    if constexpr (sizeof(Real) == sizeof(double)) {
      transpose(columns.data());
    } else {
      turned_.resize(count * rows_);
      transpose(turned_.data());
      std::copy(turned_.begin(), turned_.end(), columns.begin());
    }
  }

  /// One string L, and one symmetry of pairs.
  void string(std::size_t l, int irrep) {
    const std::size_t number = l * std::size_t(of_.groups_) + std::size_t(irrep);
    const auto first = std::size_t(of_.offsets_[number]),
               size = std::size_t(of_.offsets_[number + 1]) - first;
    if (size == 0) return;
    const Run* created = &of_.created_[first];
    const std::int32_t* pairs = &of_.pairs_[first];
    const auto gather = [&](const Aligned<double>& columns, Aligned<double>& lines) {
      lines.resize(size * rows_);
      for (std::size_t u = 0; u < size; ++u)
        std::memcpy(&lines[u * rows_], &columns[(created[u] & ~negative) * rows_], rows_ * sizeof(double));
    };
    gather(bra_columns_, left_);
    if (&bra_ != &ket_) gather(ket_columns_, right_);
    const double* right = &bra_ == &ket_ ? left_.data() : right_.data();
    product_.assign(size * size, 0);
    of_.blas_.add_products(int(size), int(size), int(rows_), left_.data(), int(rows_), right, int(rows_),
                           product_.data(), int(size));
    const auto all = std::size_t(of_.orbital_pairs_[std::size_t(irrep)].size());
    double* sums = sums_[std::size_t(irrep)].data();
    for (std::size_t t = 0; t < size; ++t)
      for (std::size_t u = 0; u < size; ++u) {
        const double value = product_[t * size + u];
        sums[std::size_t(pairs[t]) * all + std::size_t(pairs[u])] +=
            (created[t] ^ created[u]) & negative ? -value : value;
      }
  }

  const SameSpin& of_;
  const Panel& bra_;
  const Panel& ket_;
  std::size_t rows_ = 0;
  Aligned<Real> turned_;
  Aligned<double> bra_columns_, ket_columns_;  // [column][row of the slab]
  Aligned<double> left_, right_, product_;
  std::vector<std::vector<double>> sums_;  // by irrep of the pair: [bra][ket]
};

template <class Real>
void SameSpin::add_density(const Panel& bra, const Panel& ket, double* sums, int threads) const {
  if (irreps_.empty()) return;
  const auto all = slabs(bra, std::max(threads, 1));
  std::atomic<std::size_t> next{0};
  std::mutex adding;
  in_team(int(std::clamp<std::size_t>(all.size(), 1, std::size_t(std::max(threads, 1)))), [&](int) {
    DensityTask<Real> task(*this, bra, ket);
    for (std::size_t n; (n = next++) < all.size();) task.run(all[n]);
    const std::lock_guard lock(adding);
    task.add_to(sums);
  });
}

template void SameSpin::add_density<double>(const Panel&, const Panel&, double*, int) const;
template void SameSpin::add_density<float>(const Panel&, const Panel&, double*, int) const;

}  // namespace outcore::chem::ci
