// Vectors of a multireference CI: internal determinants, each with a block of coefficients over external
// orbitals.
//
// Internal orbitals come before external ones in every string. A record belongs to a pair of internal strings
// and to the spins of the electrons in external orbitals (two at most); it has the
// coefficients of all external orbitals that the irrep of the state allows.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/sibling.hpp"

namespace outcore::chem::mrci {

inline constexpr int max_internal = 32;

/// The electrons in external orbitals.
enum class External : std::uint8_t { none, alpha, beta, alpha_beta, alpha_alpha, beta_beta };
inline constexpr std::size_t external_kinds = 6;

/// The same with both spins exchanged.
[[nodiscard]] External exchanged(External kind) noexcept;
/// Numbers of electrons (alpha, beta).
[[nodiscard]] std::array<int, 2> electrons_of(External kind) noexcept;

/// External orbitals, sorted by irrep, and the layout of records: of `alpha_beta` [c][d] for each irrep of c,
/// ascending; of `alpha_alpha` pairs c > d, [c][d] for each irrep of c that is higher than that of d, or a
/// triangle by rows where both are the same.
class OUTCORE_SIBLING Externals {
 public:
  explicit Externals(std::vector<int> counts);

  [[nodiscard]] int groups() const noexcept { return int(counts_.size()); }
  [[nodiscard]] int count(int irrep) const noexcept { return counts_[std::size_t(irrep)]; }
  [[nodiscard]] int first(int irrep) const noexcept { return first_[std::size_t(irrep)]; }
  [[nodiscard]] int count() const noexcept { return first_.back(); }
  /// Elements of a record whose external orbitals multiply to this irrep.
  [[nodiscard]] std::int64_t size(External kind, int irrep) const noexcept;
  /// Where the block with c of this irrep begins.
  [[nodiscard]] std::int64_t mixed(int irrep, int of_c) const noexcept {
    return mixed_[std::size_t(irrep * groups() + of_c)];
  }
  /// The same for c > d; the irrep of c is the higher one.
  [[nodiscard]] std::int64_t same(int irrep, int of_c) const noexcept {
    return same_[std::size_t(irrep * groups() + of_c)];
  }

 private:
  std::vector<int> counts_, first_;
  std::vector<std::int64_t> mixed_, same_, mixed_size_, same_size_;
};

struct Record {
  std::uint64_t alpha, beta;  ///< internal strings
  External kind;
  int irrep;  ///< irrep of the external orbitals
  std::int64_t offset, size;
  bool own;  ///< folded: it is its own partner under the exchange of spins
};

/// The place of the coefficients of a pair of internal strings: a record, whose axes are exchanged if
/// `turned`, times a sign. Record -1: the space has no such determinants.
struct Place {
  std::int64_t record;
  bool turned;
  double sign;
};

/// Immutable.
class OUTCORE_SIBLING Space {
 public:
  /// `parity`: for folded vectors, which have as many alpha as beta electrons and C(alpha, beta) = parity
  /// C(beta, alpha); 0: not folded. Records are given by kind, alpha, beta, ascending in this order; folded,
  /// only those with alpha >= beta for `none` and `alpha_beta`, and none for `beta` and `beta_beta`. Throws
  /// std::invalid_argument for other records, for strings with the wrong number of electrons, and for records
  /// without elements.
  Space(Externals externals, std::vector<int> internal_irreps, std::array<int, 2> electrons, int target,
        int parity, std::span<const std::uint8_t> kinds, std::span<const std::uint64_t> alpha,
        std::span<const std::uint64_t> beta);

  [[nodiscard]] const Externals& externals() const noexcept { return externals_; }
  [[nodiscard]] int internals() const noexcept { return int(irreps_.size()); }
  [[nodiscard]] int orbitals() const noexcept { return internals() + externals_.count(); }
  [[nodiscard]] int irrep(int internal) const noexcept { return irreps_[std::size_t(internal)]; }
  [[nodiscard]] int irrep_of(std::uint64_t internal) const noexcept;
  [[nodiscard]] std::array<int, 2> electrons() const noexcept { return electrons_; }
  [[nodiscard]] int target() const noexcept { return target_; }
  [[nodiscard]] int parity() const noexcept { return parity_; }
  [[nodiscard]] const std::vector<Record>& records() const noexcept { return records_; }
  [[nodiscard]] const Record& record(std::int64_t index) const noexcept {
    return records_[std::size_t(index)];
  }
  /// Number of elements of a vector.
  [[nodiscard]] std::int64_t size() const noexcept;
  [[nodiscard]] Place locate(External kind, std::uint64_t alpha, std::uint64_t beta) const noexcept;

  /// Replaces a record that is its own partner by scale (R + parity R^T), in place. Other records do not
  /// change.
  void fold(std::int64_t record, double scale, double* data) const noexcept;

 private:
  [[nodiscard]] std::int64_t find(External kind, std::uint64_t alpha, std::uint64_t beta) const noexcept;

  Externals externals_;
  std::vector<int> irreps_;
  std::array<int, 2> electrons_;
  int target_, parity_;
  std::vector<Record> records_;
  std::array<std::int64_t, external_kinds + 1> first_{};  // first record of each kind
};

}  // namespace outcore::chem::mrci
