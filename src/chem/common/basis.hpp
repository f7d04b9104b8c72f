// A Gaussian basis as libcint describes it, and the integral function to evaluate it with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/sibling.hpp"

namespace outcore::chem {

/// Entry points of libcint (Q. Sun, J. Comput. Chem. 36, 1664 (2015)); the caller, who loaded it, passes
/// them.
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
///
/// A shell here has one or several components: shells of libcint on one atom with the same reach, such as the
/// s and the p shell of 6-31G, which share their exponents. Larger shells give larger slabs, which are
/// cheaper to contract. Functions are numbered so that those of a shell are consecutive; `original` gives the
/// caller's number. Limits: 65535 shells, 65535 functions (labels are stored in 16 bits).
class OUTCORE_SIBLING Basis {
 public:
  struct Component {
    int number;  ///< of libcint's shell
    int offset;  ///< of its first function in this shell
    int size;    ///< functions
  };

  /// `atm` [atoms][6], `bas` [shells][8] and `env` as in libcint; copied. Throws Error(EINVAL/EOVERFLOW).
  Basis(std::span<const int> atm, std::span<const int> bas, std::span<const double> env, bool cartesian,
        const Libcint& libcint);

  [[nodiscard]] int shells() const noexcept { return int(first_.size()) - 1; }
  [[nodiscard]] int functions() const noexcept { return first_.back(); }
  [[nodiscard]] int size(int shell) const noexcept { return first(shell + 1) - first(shell); }
  [[nodiscard]] int first(int shell) const noexcept { return first_[std::size_t(shell)]; }
  [[nodiscard]] int largest_shell() const noexcept { return largest_; }
  [[nodiscard]] std::span<const Component> components(int shell) const noexcept {
    const auto from = std::size_t(first_component_[std::size_t(shell)]);
    return {&components_[from], std::size_t(first_component_[std::size_t(shell) + 1]) - from};
  }
  /// Integrals over shells of one kind take equally long: the same angular momenta, primitives, contractions.
  [[nodiscard]] int kind(int shell) const noexcept { return kind_[std::size_t(shell)]; }
  [[nodiscard]] int kinds() const noexcept { return kinds_; }
  [[nodiscard]] int component_count() const noexcept { return int(components_.size()); }
  /// The caller's number of each function.
  [[nodiscard]] std::span<const int> original() const noexcept { return original_; }
  /// Doubles of work space that `integrals` needs.
  [[nodiscard]] std::size_t work_size() const noexcept { return work_size_; }

  /// (pq|rs) of four components (by number) into out[s][r][q][p], p running fastest. False if libcint found
  /// them all zero (out is then undefined). `work` has work_size() doubles.
  bool integrals(int p, int q, int r, int s, double* out, double* work) const noexcept {
    int shells[4] = {p, q, r, s};
    return libcint_.int2e(out, nullptr, shells, atm_.data(), atoms_, bas_.data(), component_count(),
                          env_.data(), optimizer_.get(), work) != 0;
  }

 private:
  void form_shells(bool cartesian);
  void find_kinds();
  void ask_work_size();

  Libcint libcint_;
  mutable std::vector<int> atm_, bas_;  // libcint takes them as non-const and only reads them
  mutable std::vector<double> env_;
  std::vector<int> first_, first_component_, original_, kind_;
  std::vector<Component> components_;
  int atoms_ = 0, largest_ = 0, kinds_ = 0;
  std::size_t work_size_ = 0;
  std::shared_ptr<void> optimizer_;
};

/// Number of a pair of kinds, whatever their order: below kinds (kinds + 1) / 2.
[[nodiscard]] inline std::size_t pair_of_kinds(int a, int b) noexcept {
  if (a < b) std::swap(a, b);
  return std::size_t(a) * std::size_t(a + 1) / 2 + std::size_t(b);
}

}  // namespace outcore::chem
