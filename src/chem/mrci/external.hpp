// Integrals between pairs of external orbitals, which are by far the most. They lie in memory, or in a disk
// array that products read in slabs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/blas.hpp"
#include "base/sibling.hpp"
#include "chem/common/aligned.hpp"
#include "chem/mrci/pairs.hpp"
#include "outcore/disk_array_access.hpp"

namespace outcore::chem::mrci {

/// For each irrep of pairs, a table of sums, c >= d, and one of differences, c > d; [from][to], with pairs in
/// the order of `Externals`. All tables, one after another, form a line of `size` elements.
class OUTCORE_SIBLING ExternalTables {
 public:
  struct Table {
    std::int64_t first;  ///< element of the line
    int size;            ///< rows and columns
  };
  /// The rows of a table for one orbital c: elements of the line from `first` on.
  struct Part {
    std::int64_t first;
    std::vector<double> values;
  };

  explicit ExternalTables(const Space& space);

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  [[nodiscard]] const Table& even(int irrep) const noexcept { return tables_[std::size_t(2 * irrep)]; }
  [[nodiscard]] const Table& odd(int irrep) const noexcept { return tables_[std::size_t(2 * irrep + 1)]; }
  /// Computes the rows of pairs (c, d), d <= c. `column`: (ac|bd) [a][bd] of external orbitals, bd = b (b +
  /// 1) / 2 + d for b >= d. Any thread.
  [[nodiscard]] std::vector<Part> rows(const Integrals& integrals, int c, const double* column) const;

  /// Allocates memory for all tables.
  void reserve();
  /// Keeps rows in memory. Any thread, each c once. Throws std::logic_error before `reserve`.
  void take(const Integrals& integrals, int c, const double* column);
  /// From now on the tables are read from this array, a line of float64, in slabs of about `slab_elements`
  /// elements.
  void read_from(const DiskArrayAccess& array, std::int64_t slab_elements);
  [[nodiscard]] std::int64_t slab_elements() const noexcept { return slab_; }
  [[nodiscard]] bool on_disk() const noexcept { return array_ != nullptr; }
  [[nodiscard]] std::int64_t memory_bytes() const noexcept {
    return std::int64_t(line_.size() * sizeof(double));
  }

  /// Two slabs of a thread.
  struct Slabs {
    Aligned<double> now, next;
  };
  /// c[m][size] = a[m][size] table. Any thread. Throws std::logic_error if there are no tables.
  void multiply(const Table& table, const Blas& blas, int m, const double* a, int lda, double* c, int ldc,
                Slabs& slabs) const;

 private:
  const Space& space_;
  std::vector<Table> tables_;
  std::vector<std::int64_t> rows_before_;  ///< [irrep][even, odd][c]: rows of orbitals below c
  std::int64_t size_ = 0, slab_ = 0;
  Aligned<double> line_;
  const DiskArrayAccess* array_ = nullptr;
};

}  // namespace outcore::chem::mrci
