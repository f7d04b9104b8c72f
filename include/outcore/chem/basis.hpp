// A Gaussian basis as libcint describes it, and the integral function to evaluate it with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace outcore::chem {

/// Entry points of libcint (Q. Sun, J. Comput. Chem. 36, 1664 (2015)), handed over by whoever loaded it.
struct Libcint {
  using Integral = int (*)(double* out, int* dims, int* shells, int* atm, int atom_count, int* bas,
                           int shell_count, double* env, void* optimizer, double* cache);
  using MakeOptimizer = void (*)(void** optimizer, int* atm, int atom_count, int* bas, int shell_count,
                                 double* env);
  using DeleteOptimizer = void (*)(void** optimizer);

  Integral int2e = nullptr;  ///< int2e_cart or int2e_sph
  MakeOptimizer make_optimizer = nullptr;
  DeleteOptimizer delete_optimizer = nullptr;
};

/// Shells and functions of a molecule's basis; immutable, shared by all threads.
/// Limits: 65535 shells, 65535 functions (labels are stored in 16 bits).
class Basis {
 public:
  /// `atm` [atoms][6], `bas` [shells][8] and `env` as in libcint; copied. Throws Error(EINVAL/EOVERFLOW).
  Basis(std::span<const int> atm, std::span<const int> bas, std::span<const double> env, bool cartesian,
        const Libcint& libcint);

  [[nodiscard]] int shells() const noexcept { return int(size_.size()); }
  [[nodiscard]] int functions() const noexcept { return first_.back(); }
  [[nodiscard]] int size(int shell) const noexcept { return size_[std::size_t(shell)]; }
  [[nodiscard]] int first(int shell) const noexcept { return first_[std::size_t(shell)]; }
  [[nodiscard]] int largest_shell() const noexcept { return largest_; }
  /// Doubles of work space that `integrals` needs.
  [[nodiscard]] std::size_t work_size() const noexcept { return work_size_; }

  /// (pq|rs) of four shells into out[s][r][q][p], p running fastest. False if libcint found them all zero
  /// (out is then undefined). `work` has work_size() doubles.
  bool integrals(int p, int q, int r, int s, double* out, double* work) const noexcept {
    int shells[4] = {p, q, r, s};
    return libcint_.int2e(out, nullptr, shells, atm_.data(), atoms_, bas_.data(), this->shells(), env_.data(),
                          optimizer_.get(), work) != 0;
  }

 private:
  Libcint libcint_;
  mutable std::vector<int> atm_, bas_;  // libcint takes them as non-const and only reads them
  mutable std::vector<double> env_;
  std::vector<int> size_, first_;
  int atoms_ = 0, largest_ = 0;
  std::size_t work_size_ = 0;
  std::shared_ptr<void> optimizer_;
};

}  // namespace outcore::chem
