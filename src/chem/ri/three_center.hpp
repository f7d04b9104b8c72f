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

/// Two orbital shells i >= j and where their products lie in a row: function a of i and b of j in column
/// `column + b * size(i) + a`. Of i == j all products are there, those of a and b twice.
struct PairColumns {
  std::int32_t i, j, column;
};

/// Two orbital shells in either order, whose products are those of a pair after an operation of the point
/// group: they lie in its columns, up to signs.
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
  /// First function of a shell, each basis counted from zero; one more at the end of each.
  [[nodiscard]] int first(int orbital_shell) const noexcept { return first_[std::size_t(orbital_shell)]; }
  [[nodiscard]] int first_auxiliary(int shell) const noexcept {
    return first_[std::size_t(orbital_shells_ + shell)] - first(orbital_shells_);
  }
  [[nodiscard]] int size(int orbital_shell) const noexcept {
    return first(orbital_shell + 1) - first(orbital_shell);
  }

  /// sqrt(max |(ij|ij)|) of the pairs i >= j, at i (i + 1) / 2 + j: no row of fitted integrals of a pair has
  /// a norm above it. Uses `threads` threads.
  [[nodiscard]] std::vector<double> bounds(int threads) const;

  /// (mn|P) of `pairs` and the auxiliary shells [first, last) into rows, one for each auxiliary function,
  /// `stride` doubles apart. Columns of no pair are left alone. Throws Error(EINVAL) for shells that are
  /// none.
  void integrals(std::span<const PairColumns> pairs, int first, int last, double* out, std::size_t stride,
                 int threads) const;

  /// Rows as full symmetric matrices: out[row][m][n] = out[row][n][m] = rows[row][column of mn]. Elements of
  /// no pair are left alone.
  void expand(std::span<const PairColumns> pairs, const double* rows, std::size_t stride, std::size_t count,
              double* out, int threads) const;

  /// The same of images: out[row][m][n] = out[row][n][m] = c[o] s[o][m] s[o][n] rows[row][column of mn], with
  /// the operation o of the image, `characters` c [operations] and `signs` s [operations][functions]. Of n
  /// there are `width` functions: those of each shell from places[shell] on, or none if that is negative.
  /// Throws Error(EINVAL) for shells that are none.
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
