#include "chem/ci/same_spin.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/thread_team.hpp"
#include "chem/common/aligned.hpp"

namespace outcore::chem::ci {
namespace {

constexpr std::int64_t slab_bytes = std::int64_t{4} << 20;  // bytes of the rows that a thread has transposed
constexpr std::int64_t fewest_rows = 64, max_rows = 512;

}  // namespace

SameSpin::SameSpin(const Space& space, const Integrals& integrals, bool beta, Blas blas)
    : strings_(beta ? &space.beta : &space.alpha),
      orbitals_(space.orbitals.count()),
      groups_(space.orbitals.groups()),
      target_(space.target),
      blas_(blas) {
  const Orbitals& orbitals = space.orbitals;
  const bool single = space.electrons() == 1 && strings_->electrons() == 1;
  if (!single && strings_->electrons() < 2) return;
  for (int g = 0; g < groups_; ++g) {
    orbital_pairs_.emplace_back(orbitals, g, integrals, beta);
    exact_.push_back(std::move(orbital_pairs_.back().matrix));
  }
  for (std::uint64_t string : strings_by_value(orbitals.count(), strings_->electrons() - (single ? 1 : 2))) {
    irreps_.push_back(orbitals.irrep_of(string));
    for (int g = 0; g < groups_; ++g) {
      offsets_.push_back(std::int64_t(created_.size()));
      const SamePairs& of = orbital_pairs_[std::size_t(g)];
      const std::int64_t sector = strings_->offset(irreps_.back() ^ g);
      for (int pair = 0; pair < of.size(); ++pair) {
        const int s = of.s[std::size_t(pair)], q = of.q[std::size_t(pair)];
        if (occupied(string, s) || occupied(string, q)) continue;
        const std::uint64_t first = with(string, s);
        const int sign = single ? 0 : below(string, s) + below(first, q);
        created_.push_back(Run(strings_->rank(with(first, q)) - sector) | (sign & 1 ? negative : 0));
        pairs_.push_back(pair);
      }
    }
  }
  offsets_.push_back(std::int64_t(created_.size()));
}

template <class Real>
const std::vector<std::vector<Real>>& SameSpin::matrices() const {
  if constexpr (sizeof(Real) == sizeof(double)) {
    return exact_;
  } else {
    std::call_once(rounded_made_, [this] {
      for (const auto& each : exact_) rounded_.emplace_back(each.begin(), each.end());
    });
    return rounded_;
  }
}

double SameSpin::operations(int irrep) const {
  double sum = 0;
  for (std::size_t l = 0; l < irreps_.size(); ++l) {
    const std::size_t at = l * std::size_t(groups_) + std::size_t(irreps_[l] ^ irrep);
    const auto size = double(offsets_[at + 1] - offsets_[at]);
    sum += size * size;
  }
  return sum;
}

/// Number of rows that are processed together: large enough for efficient matrix products, small enough that
/// all threads have work and that the rows stay in the cache.
std::vector<SameSpin::Slab> SameSpin::slabs(const Panel& panel, int threads) const {
  std::vector<Slab> result;
  const std::int64_t bytes = panel.single() ? sizeof(float) : sizeof(double);
  for (int g = 0; g < groups_; ++g) {
    const std::int64_t columns = strings_->count(g ^ target_), rows = panel.home_rows(g);
    if (columns == 0 || rows == 0) continue;
    std::int64_t most = std::clamp(slab_bytes / (columns * bytes), fewest_rows, max_rows);
    most = std::min(most, std::max<std::int64_t>(1, (rows + threads - 1) / threads));
    const std::int64_t count = (rows + most - 1) / most;
    for (std::int64_t n = 0; n < count; ++n) result.push_back({g, rows * n / count, rows * (n + 1) / count});
  }
  return result;
}

/// The work and the memory of one thread.
template <class Real>
class SameSpin::Task {
 public:
  Task(const SameSpin& of, const Panel& x, Panel& t)
      : of_(of), loops_(run_loops<Real>()), matrices_(of.matrices<Real>()), from_(x), to_(t) {}

  void run(const Slab& slab) {
    const int sector = slab.irrep ^ of_.target_;
    const std::int64_t columns = of_.strings_->count(sector);
    rows_ = slab.last - slab.first;
    x_.resize(std::size_t(columns * rows_));
    y_.assign(std::size_t(columns * rows_), Real(0));
    const auto from = from_.home<Real>(slab.irrep), to = to_.home<Real>(slab.irrep);
    loops_.transpose(x_.data(), std::size_t(rows_), from.first + slab.first * from.stride,
                     std::size_t(from.stride), std::size_t(rows_), std::size_t(columns));
    for (std::size_t l = 0; l < of_.irreps_.size(); ++l) string(l, of_.irreps_[l] ^ sector);
    loops_.add_transposed(to.first + slab.first * to.stride, std::size_t(to.stride), y_.data(),
                          std::size_t(rows_), std::size_t(columns), std::size_t(rows_));
  }

 private:
  /// The part of one string L and one symmetry of pairs.
  void string(std::size_t l, int irrep) {
    const std::size_t at = l * std::size_t(of_.groups_) + std::size_t(irrep);
    const auto first = std::size_t(of_.offsets_[at]), size = std::size_t(of_.offsets_[at + 1]) - first;
    if (size == 0) return;
    const Run* created = &of_.created_[first];
    const std::int32_t* pairs = &of_.pairs_[first];
    factors_.resize(2 * size);
    matrix_.resize(size * size);
    const auto rows = std::size_t(rows_);
    in_.resize(size * rows);
    out_.resize(size * rows);
    for (std::size_t u = 0; u < size; ++u) {
      factors_[u] = created[u] & negative ? Real(-1) : Real(1);
      factors_[size + u] = -factors_[u];
      std::memcpy(&in_[u * rows], &x_[(created[u] & ~negative) * rows], rows * sizeof(Real));
    }
    const Real* all = matrices_[std::size_t(irrep)].data();
    const auto all_size = std::size_t(of_.orbital_pairs_[std::size_t(irrep)].size());
    for (std::size_t t = 0; t < size; ++t)
      loops_.select(&matrix_[t * size], all + std::size_t(pairs[t]) * all_size, pairs,
                    &factors_[created[t] & negative ? size : 0], int(size));
    of_.blas_.multiply(int(size), int(rows), int(size), matrix_.data(), int(size), in_.data(), int(rows),
                       out_.data(), int(rows));
    for (std::size_t t = 0; t < size; ++t)
      loops_.add(&y_[(created[t] & ~negative) * rows], &out_[t * rows], rows);
  }

  const SameSpin& of_;
  const RunLoops<Real>& loops_;
  const std::vector<std::vector<Real>>& matrices_;
  const Panel& from_;
  Panel& to_;
  std::int64_t rows_ = 0;
  Aligned<Real> x_, y_;  // [column][row of the slab]
  std::vector<Real> factors_;
  Aligned<Real> matrix_, in_, out_;
};

template <class Real>
void SameSpin::apply(const Panel& x, Panel& t, int threads) const {
  if (irreps_.empty()) return;
  const auto all = slabs(x, std::max(threads, 1));
  std::atomic<std::size_t> next{0};
  in_team(int(std::clamp<std::size_t>(all.size(), 1, std::size_t(std::max(threads, 1)))), [&](int) {
    Task<Real> task(*this, x, t);
    for (std::size_t n; (n = next++) < all.size();) task.run(all[n]);
  });
}

template void SameSpin::apply<double>(const Panel&, Panel&, int) const;
template void SameSpin::apply<float>(const Panel&, Panel&, int) const;

}  // namespace outcore::chem::ci
