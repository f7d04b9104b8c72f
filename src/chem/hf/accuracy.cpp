#include "chem/hf/accuracy.hpp"

#include <algorithm>
#include <cerrno>
#include <string>

#include "chem/hf/coulomb_exchange.hpp"
#include "outcore/error.hpp"

namespace outcore::chem {
namespace {

constexpr double min_correlation = 0.1;  // least |D_ij| / sqrt(D_ii D_jj) that is assumed for a crude density
constexpr double min_diagonal = 1e-3;    // least diagonal, for functions that it leaves empty
constexpr double limit_share = 1.0 / 16;  // limit, as a fraction of the step

/// sum of squares over each shell block, [shells][shells].
std::vector<double> sums_of_squares(const Basis& basis, const double* matrix) {
  const auto n = std::size_t(basis.functions());
  std::vector<double> sums;
  for (int p = 0; p < basis.shells(); ++p)
    for (int q = 0; q < basis.shells(); ++q) {
      double sum = 0;
      for (int a = basis.first(p); a < basis.first(p + 1); ++a)
        for (int b = basis.first(q); b < basis.first(q + 1); ++b) {
          const double value = matrix[std::size_t(a) * n + std::size_t(b)];
          sum += value * value;
        }
      sums.push_back(sum);
    }
  return sums;
}

/// Rounds to a power of 2^(1/4). So the crude densities of two runs, which differ in their last digits, give
/// the same steps, and one run can use the integrals that the other has kept.
double rounded(double value) {
  return std::exp2(std::round(4 * std::log2(value)) / 4);
}

void check(double step) {
  if (!(step > 0 && step <= 1))
    throw Error(EINVAL, {.attempted = "accuracy of integrals",
                         .detail = "a step must be above 0 and at most 1, not " + std::to_string(step)});
}

}  // namespace

Accuracy::Accuracy(double step) : step_(step), largest_(step), least_(step), share_(0.5) {
  check(step);
}

Accuracy::Accuracy(const Basis& basis, const double* densities, std::size_t count, double step,
                   double max_step)
    : step_(step),
      largest_(max_step),
      share_(limit_share),
      shells_(std::size_t(basis.shells())),
      blocks_(shells_ * shells_) {
  check(step);
  check(max_step);
  const Densities internal(basis, densities, std::vector<int>(count, 1));
  for (std::size_t d = 0; d < count; ++d) {
    const auto squares = sums_of_squares(basis, internal.matrix(d));
    for (std::size_t at = 0; at < blocks_.size(); ++at) blocks_[at] += squares[at];
  }
  const auto at = [&](std::size_t p, std::size_t q) -> double& { return blocks_[p * shells_ + q]; };
  for (std::size_t p = 0; p < shells_; ++p)
    for (std::size_t q = 0; q < shells_; ++q) at(p, q) /= double(basis.size(int(p)) * basis.size(int(q)));
  for (std::size_t p = 0; p < shells_; ++p) at(p, p) = std::max(at(p, p), min_diagonal * min_diagonal);
  double largest = 0;
  for (std::size_t p = 0; p < shells_; ++p)
    for (std::size_t q = 0; q < shells_; ++q) {
      const double allowed = std::sqrt(at(p, p) * at(q, q));
      at(p, q) = rounded(std::max(at(p, q), min_correlation * min_correlation * allowed));
      largest = std::max(largest, at(p, q));
    }
  least_ = std::min(largest_, step_ / std::sqrt(18 * largest * largest));
}

EnergyError::EnergyError(const Basis& basis, const Densities& densities,
                         std::shared_ptr<const Accuracy> accuracy)
    : basis_(basis), densities_(densities), accuracy_(std::move(accuracy)) {
  if (densities.count() < 1 || densities.count() > 2)
    throw Error(EINVAL,
                {.attempted = "error of the energy",
                 .detail = "one density or those of two spins, not " + std::to_string(densities.count())});
  const auto n = std::size_t(basis.functions());
  total_.assign(densities.matrix(0), densities.matrix(0) + n * n);
  if (densities.count() == 2)
    for (std::size_t at = 0; at < n * n; ++at) total_[at] += densities.matrix(1)[at];
}

/// Gathers rows of the densities over the slab's columns: for the functions of k of the sum of both spins,
/// for those of i and j of each spin.
void EnergyError::gather(const Slab& slab) {
  const auto n = std::size_t(basis_.functions()), length = slab.row_length;
  const auto ni = std::size_t(slab.ni), nj = std::size_t(slab.nj), nk = std::size_t(slab.nk);
  rows_.assign((nk + densities_.count() * (ni + nj)) * length, 0.0);
  double* to = rows_.data();
  const auto copy = [&](const double* density, int shell, std::size_t count) {
    for (std::size_t r = 0; r < count; ++r, to += length) {
      const double* from = density + (std::size_t(basis_.first(shell)) + r) * n;
      for (std::size_t c = 0; c < slab.columns.size(); ++c) to[c] = from[slab.columns[c]];
    }
  };
  copy(total_.data(), slab.k, nk);
  for (std::size_t spin = 0; spin < densities_.count(); ++spin) {
    copy(densities_.matrix(spin), slab.i, ni);
    copy(densities_.matrix(spin), slab.j, nj);
  }
}

/// Computes for each column the square of g, g.v, and the largest |v|.
void EnergyError::add_values(const Slab& slab) {
  const auto n = std::size_t(basis_.functions()), length = slab.row_length;
  const auto ni = std::size_t(slab.ni), nj = std::size_t(slab.nj), nk = std::size_t(slab.nk);
  const auto i0 = std::size_t(basis_.first(slab.i)), j0 = std::size_t(basis_.first(slab.j)),
             k0 = std::size_t(basis_.first(slab.k));
  const double exchange = densities_.count() == 1 ? 1 : 2;
  for (auto* sums : {&squares_, &products_, &magnitudes_}) sums->assign(length, 0.0);
  derivative_.resize(length);
  double* const g = derivative_.data();
  for (std::size_t r = 0; r < slab.rows(); ++r) {
    const std::size_t pair = std::size_t(slab.first_pair) + r / nk, a = pair / nj, b = pair % nj, c = r % nk;
    const double* row = rows_.data() + c * length;
    const double d_ab = 4 * total_[(i0 + a) * n + j0 + b];
    for (std::size_t at = 0; at < length; ++at) g[at] = d_ab * row[at];
    for (std::size_t spin = 0; spin < densities_.count(); ++spin) {
      const double* density = densities_.matrix(spin);
      const double* d_a = rows_.data() + (nk + spin * (ni + nj) + a) * length;
      const double* d_b = rows_.data() + (nk + spin * (ni + nj) + ni + b) * length;
      const double d_ac = exchange * density[(i0 + a) * n + k0 + c],
                   d_bc = exchange * density[(j0 + b) * n + k0 + c];
      for (std::size_t at = 0; at < length; ++at) g[at] -= d_ac * d_b[at] + d_bc * d_a[at];
    }
    const double* v = slab.row(r);
    for (std::size_t at = 0; at < length; ++at) {
      squares_[at] += g[at] * g[at];
      products_[at] += g[at] * v[at];
      magnitudes_[at] = std::max(magnitudes_[at], std::abs(v[at]));
    }
  }
}

void EnergyError::add(const Slab& slab) {
  gather(slab);
  add_values(slab);
  const bool stored = slab.weights.empty();
  std::size_t column = 0;
  for (std::size_t at = 0; at < slab.shells.size(); ++at) {
    const int l = slab.shells[at];
    const auto size = std::size_t(basis_.size(l));
    const double step = stored ? slab.steps[column] : 0.0;
    double square = 0, product = 0, magnitude = 0;
    for (const std::size_t end = column + size; column < end; ++column) {
      square += squares_[column];
      product += products_[column];
      magnitude = std::max(magnitude, magnitudes_[column]);
    }
    variance_ += step * step / 12 * square;
    worst_ += step / 2 * std::sqrt(square * double(slab.rows() * size));
    // Values that were scaled to the limit when they were packed. Others that just reach it cannot be told
    // from them.
    const bool at_random = stored ? magnitude <= accuracy_->limit(slab.i, slab.j, slab.k, l) + 0.51 * step
                                  : slab.weights[at] > 1;
    if (!at_random) continue;
    variance_ += product * product;
    worst_ += std::abs(product);
    largest_ = std::max(largest_, product * product);
  }
}

void EnergyError::add(const EnergyError& other) {
  variance_ += other.variance_;
  worst_ += other.worst_;
  largest_ = std::max(largest_, other.largest_);
}

}  // namespace outcore::chem
