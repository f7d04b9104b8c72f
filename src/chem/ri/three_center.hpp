// Three-centre integrals (mn|P) over pairs of orbital shells and shells of an auxiliary basis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/sibling.hpp"
#include "chem/common/basis.hpp"

namespace outcore::chem {

/// Two orbital shells i >= j, and the place of their products in a row: functions a of i and b of j have the
/// column `column + b * size(i) + a`. For i == j a row has all products, so each of a != b twice.
struct PairColumns {
  std::int32_t i, j, column;
};

/// Two orbital shells in either order, whose products are those of a pair after an operation of the point
/// group: they have the columns of the pair, up to signs.
struct ImageColumns {
  std::int32_t i, j, column, operation;
};

/// Shells of an orbital basis, followed by those of an auxiliary one; immutable, shared by all threads.
class OUTCORE_SIBLING ThreeCenter {
 public:
  struct Functions {
    Libcint::Integral int3c2e = nullptr;              ///< int3c2e_cart or int3c2e_sph
    Libcint::Integral int2e = nullptr;                ///< of the same kind; for the bounds
    Libcint::MakeOptimizer make_optimizer = nullptr;  ///< int3c2e_optimizer
    Libcint::DeleteOptimizer delete_optimizer = nullptr;
  };

  /// `atm`, `bas` and `env` as in libcint, of both bases; the first `orbital_shells` of `bas` are orbitals.
  /// Copied. Throws Error(EINVAL).
  ThreeCenter(std::span<const int> atm, std::span<const int> bas, std::span<const double> env,
              int orbital_shells, bool cartesian, const Functions& functions);

  [[nodiscard]] int orbital_shells() const noexcept { return orbital_shells_; }
  [[nodiscard]] int auxiliary_shells() const noexcept { return int(first_.size()) - 1 - orbital_shells_; }
  /// First function of a shell, counted from zero in each basis; for the shell after the last, the number of
  /// functions.
  [[nodiscard]] int first(int orbital_shell) const noexcept { return first_[std::size_t(orbital_shell)]; }
  [[nodiscard]] int first_auxiliary(int shell) const noexcept {
    return first_[std::size_t(orbital_shells_ + shell)] - first(orbital_shells_);
  }
  [[nodiscard]] int size(int orbital_shell) const noexcept {
    return first(orbital_shell + 1) - first(orbital_shell);
  }

  /// sqrt(max |(ij|ij)|) of the pairs i >= j, at i (i + 1) / 2 + j: an upper bound of the norm of the fitted
  /// integrals of a pair. Uses `threads` threads.
  [[nodiscard]] std::vector<double> bounds(int threads) const;

  /// Computes (mn|P) for `pairs` and the auxiliary shells [first, last), into one row for each auxiliary
  /// function; rows are `stride` doubles apart. Columns that belong to no pair do not change. Throws
  /// Error(EINVAL) for invalid shells.
  void integrals(std::span<const PairColumns> pairs, int first, int last, double* out, std::size_t stride,
                 int threads) const;

  /// Expands rows to full symmetric matrices: out[row][m][n] = out[row][n][m] = rows[row][column of mn].
  /// Elements that belong to no pair do not change.
  void expand(std::span<const PairColumns> pairs, const double* rows, std::size_t stride, std::size_t count,
              double* out, int threads) const;

  /// The same for images: out[row][m][n] = out[row][n][m] = c[o] s[o][m] s[o][n] rows[row][column of mn],
  /// with the operation o of the image, `characters` c [operations] and `signs` s [operations][functions].
  /// The index n has `width` functions: those of a shell begin at places[shell], and are left out if that is
  /// negative. Throws Error(EINVAL) for invalid shells.
  void expand_images(std::span<const ImageColumns> images, const double* rows, std::size_t stride,
                     std::size_t count, std::span<const double> signs, std::span<const double> characters,
                     std::span<const std::int32_t> places, std::size_t width, double* out, int threads) const;

 private:
  void check(std::span<const PairColumns> pairs) const;
  void pair(const PairColumns& which, int first, int last, double* out, std::size_t stride, double* buffer,
            double* work) const;
  [[nodiscard]] double bound(int i, int j, double* buffer, double* work) const;
  [[nodiscard]] std::size_t work_size(Libcint::Integral integral, bool four_centers) const;

  Functions functions_;
  mutable std::vector<int> atm_, bas_;  // libcint takes them as non-const and only reads them
  mutable std::vector<double> env_;
  std::vector<int> first_;
  int orbital_shells_, atoms_, shells_;
  std::size_t largest_orbital_ = 0, largest_auxiliary_ = 0, work3_ = 0, work4_ = 0;
  std::shared_ptr<void> optimizer_;
};

}  // namespace outcore::chem
