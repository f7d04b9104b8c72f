#include "outcore/chem/accuracy.hpp"

#include <algorithm>
#include <cerrno>
#include <string>

#include "outcore/chem/coulomb_exchange.hpp"
#include "outcore/error.hpp"

namespace outcore::chem {
namespace {

constexpr double least_correlation =
    0.1;                                 // |D_ij| / sqrt(D_ii D_jj) of a crude density is not believed below
constexpr double least_diagonal = 1e-3;  // nor its diagonal, of functions that it leaves empty

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

std::vector<double> norms(const Basis& basis, const double* matrix) {
  std::vector<double> result = sums_of_squares(basis, matrix);
  for (double& value : result) value = std::sqrt(value);
  return result;
}

/// To a power of 2^(1/4): so the crude densities of two runs, which differ in their last digits, give the
/// same steps, and integrals that one has kept fit the other.
double rounded(double value) {
  return std::exp2(std::round(4 * std::log2(value)) / 4);
}

void check(double step) {
  if (!(step > 0 && step <= 1))
    throw Error(EINVAL, {.attempted = "accuracy of integrals",
                         .detail = "a step must be above 0 and at most 1, not " + std::to_string(step)});
}

}  // namespace

Accuracy::Accuracy(double step) : step_(step), largest_(step), least_(step) {
  check(step);
}

Accuracy::Accuracy(const Basis& basis, const double* densities, std::size_t count, double step,
                   double largest_step)
    : step_(step), largest_(largest_step), shells_(std::size_t(basis.shells())), blocks_(shells_ * shells_) {
  check(step);
  check(largest_step);
  const Densities internal(basis, densities, std::vector<int>(count, 1));
  for (std::size_t d = 0; d < count; ++d) {
    const auto squares = sums_of_squares(basis, internal.matrix(d));
    for (std::size_t at = 0; at < blocks_.size(); ++at) blocks_[at] += squares[at];
  }
  const auto at = [&](std::size_t p, std::size_t q) -> double& { return blocks_[p * shells_ + q]; };
  for (std::size_t p = 0; p < shells_; ++p)
    for (std::size_t q = 0; q < shells_; ++q) at(p, q) /= double(basis.size(int(p)) * basis.size(int(q)));
  for (std::size_t p = 0; p < shells_; ++p) at(p, p) = std::max(at(p, p), least_diagonal * least_diagonal);
  double largest = 0;
  for (std::size_t p = 0; p < shells_; ++p)
    for (std::size_t q = 0; q < shells_; ++q) {
      const double allowed = std::sqrt(at(p, p) * at(q, q));
      at(p, q) = rounded(std::max(at(p, q), least_correlation * least_correlation * allowed));
      largest = std::max(largest, at(p, q));
    }
  least_ = std::min(largest_, step_ / std::sqrt(18 * largest * largest));
}

EnergyError::EnergyError(const Basis& basis, const Densities& densities)
    : basis_(basis), shells_(std::size_t(basis.shells())), exchange_factor_(densities.count() == 1 ? 1 : 2) {
  if (densities.count() < 1 || densities.count() > 2)
    throw Error(EINVAL,
                {.attempted = "error of the energy",
                 .detail = "one density or those of two spins, not " + std::to_string(densities.count())});
  const auto n = std::size_t(basis.functions());
  std::vector<double> sum(n * n);
  for (std::size_t d = 0; d < densities.count(); ++d) {
    spins_.push_back(norms(basis, densities.matrix(d)));
    for (std::size_t at = 0; at < n * n; ++at) sum[at] += densities.matrix(d)[at];
  }
  total_ = norms(basis, sum.data());
}

void EnergyError::add(const Slab& slab) {
  const auto row = [&](const std::vector<double>& norms, int shell) {
    return norms.data() + std::size_t(shell) * shells_;
  };
  const double* t_k = row(total_, slab.k);
  const double coulomb = 4 * row(total_, slab.i)[slab.j];
  std::size_t column = 0;
  for (const auto l : slab.shells) {
    const auto size = std::size_t(basis_.size(l));
    const double step = slab.steps[column];
    column += size;
    double norm = coulomb * t_k[l];
    for (const auto& spin : spins_) {
      const double *s_i = row(spin, slab.i), *s_j = row(spin, slab.j);
      norm += exchange_factor_ * (s_i[slab.k] * s_j[l] + s_i[l] * s_j[slab.k]);
    }
    variance_ += step * step / 12 * norm * norm;
    worst_ += step / 2 * norm * std::sqrt(double(slab.rows() * size));
  }
}

void EnergyError::add(const EnergyError& other) {
  variance_ += other.variance_;
  worst_ += other.worst_;
}

}  // namespace outcore::chem
