// The product of the Hamiltonian with a vector of a multireference CI, hole by hole.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <span>

#include "base/blas.hpp"
#include "chem/mrci/external.hpp"
#include "chem/mrci/reach.hpp"

namespace outcore::chem::mrci {

/// Some holes of one part.
struct HoleTask {
  std::int32_t holes;  ///< number of the list
  std::int64_t first, last;
  double cost;  ///< estimated operations
};

/// The Hamiltonian on vectors C: H C is the sum over all tasks. Folded (C = P C^T), H C = T + P T^T, and the
/// tasks add T to the records of the space; after all tasks, the caller must fold each record that is its own
/// partner (Space::fold with scale 1). Any thread, several calls at a time.
class OUTCORE_SIBLING Kernel {
 public:
  /// coulomb, exchange: (pp|qq), (pq|pq) [n][n]. Integrals are copied. Those between external pairs come
  /// later, by `externals()`. Throws std::invalid_argument for fewer than two electrons.
  Kernel(std::shared_ptr<const Space> space, const Integrals& integrals, const double* coulomb,
         const double* exchange, Blas blas);

  [[nodiscard]] const Space& space() const noexcept { return *space_; }
  [[nodiscard]] const std::shared_ptr<const Space>& shared_space() const noexcept { return space_; }
  /// All work, in tasks of at most `max_cost`; with `max_elements`, the units of a task also have at most
  /// that many elements, unless a single hole has more. `units`: for each record the number of the unit in
  /// which it is moved, ascending from 0; empty: each record is a unit.
  [[nodiscard]] std::vector<HoleTask> tasks(double max_cost, std::int64_t max_elements,
                                            std::span<const std::int64_t> units) const;
  /// The units (without `units`: the records) that a task reads and adds to, ascending.
  [[nodiscard]] std::vector<std::int64_t> units_of(const HoleTask& task,
                                                   std::span<const std::int64_t> units) const;
  /// Adds the task's part of H x to t. Record r begins at offsets[r] of x and of t. `shared`: other calls add
  /// to the same t meanwhile. Throws std::out_of_range for a record of the task that is not within x and t.
  void apply(const HoleTask& task, std::span<const double> x, std::span<double> t,
             std::span<const std::int64_t> offsets, bool shared) const;
  /// Adds the task's part of sum_r <a+_p b+_r b_r a_q> to alpha[p][q], and that of beta electrons to
  /// beta[p][q]. The sum over all tasks is the density of a spin times the number of electrons of the other
  /// spin. Folded, alpha receives both parts, and is then that of either spin.
  void density(const HoleTask& task, std::span<const double> x, std::span<const std::int64_t> offsets,
               double* alpha, double* beta) const;
  /// The task's part of sum_pq <a+_p b+_q b_p a_q>.
  [[nodiscard]] double exchange(const HoleTask& task, std::span<const double> x,
                                std::span<const std::int64_t> offsets) const;
  /// Diagonal elements of the Hamiltonian of records [first, last), one after another.
  void diagonal(std::int64_t first, std::int64_t last, double* elements) const;
  /// Bytes of integrals in memory.
  [[nodiscard]] std::int64_t integral_bytes() const noexcept;
  /// Bytes of memory that `apply` uses in each thread, beside its arguments.
  [[nodiscard]] std::int64_t work_bytes() const noexcept;

  [[nodiscard]] ExternalTables& externals() noexcept { return externals_; }
  [[nodiscard]] const ExternalTables& externals() const noexcept { return externals_; }
  /// The integrals, without `rows`.
  [[nodiscard]] const Integrals& integrals() const noexcept { return integrals_; }

 private:
  class Worker;
  class Levels;
  /// Calls visit(holes, reach, panel, weight) for all holes of opposite spins; panel has <hole| b_q a_p |x>
  /// row by row, or, for a line, by the number of the pair.
  template <class Visit>
  void each_panel(const HoleTask& task, std::span<const double> x, std::span<const std::int64_t> offsets,
                  const Visit& visit) const;
  [[nodiscard]] double cost_of(const Holes& of, const Hole& hole) const;
  [[nodiscard]] std::int64_t batch_elements() const noexcept;
  [[nodiscard]] std::int64_t length_of(const Holes& of) const noexcept;
  void touched(const Reacher& reacher, const Holes& of, const Hole& hole, Reach& reach,
               std::span<const std::int64_t> units, std::vector<std::int64_t>& found) const;

  std::shared_ptr<const Space> space_;
  Blas blas_;
  Pairs pairs_;
  std::vector<Holes> holes_;
  double constant_;
  std::vector<double> one_, coulomb_, exchange_;  // [n][n]
  Integrals integrals_;
  ExternalTables externals_;
  mutable std::array<std::mutex, 1024> locks_;
};

}  // namespace outcore::chem::mrci
