// Two-electron integrals of a molecule, kept or recomputed, and their contraction to J and K.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/sibling.hpp"
#include "chem/common/basis.hpp"
#include "chem/hf/coulomb_exchange.hpp"
#include "chem/hf/integral_file.hpp"
#include "chem/hf/keep_rule.hpp"
#include "chem/hf/screening.hpp"

namespace outcore::chem {

struct IntegralCounts {
  std::uint64_t quartets = 0;      ///< quartets of shells computed so far
  std::uint64_t computed = 0;      ///< integrals in these quartets
  std::uint64_t stored = 0;        ///< integrals kept
  std::uint64_t memory_bytes = 0;  ///< records in memory
  std::uint64_t disk_bytes = 0;    ///< records on disk
  std::uint64_t records = 0;       ///< records in memory and on disk
  std::uint64_t damaged = 0;       ///< records that came back damaged to this process; they are recomputed
  std::uint64_t lost_tasks = 0;    ///< tasks with integrals that found no place and are recomputed
};

/// This process's share of the two-electron integrals. Quartets that the rule keeps are computed once, stored
/// in records, and contracted from there; the rest is recomputed each time. The caller distributes tasks
/// (Screening::tasks) to processes and to threads: calls below that name different threads may run at the
/// same time. If a call throws, the object can only be destroyed.
class OUTCORE_SIBLING TwoElectron {
 public:
  TwoElectron(std::shared_ptr<const Basis> basis, std::shared_ptr<const Screening> screening,
              std::shared_ptr<const KeepRule> rule, int threads);

  /// To store records, once: open, store the kept part of every task of this process's share, close.
  void open_store(const IntegralFileOptions& options);
  void store(int thread, std::size_t first_task, std::size_t last_task);
  void close_store();
  /// Instead of open_store, store and close_store: opens this process's part of the records that a previous
  /// run has kept.
  void open_kept(const IntegralFileOptions& options, std::span<const KeptFile> kept, int part, int parts);
  /// See IntegralFile::commit.
  [[nodiscard]] KeptFile commit();
  /// Global placement, after close_store: pass the results of index() of all processes, in order of rank.
  /// From then on any process can contract any record on disk. See IntegralFile.
  [[nodiscard]] std::vector<std::byte> index() const;
  void share(std::span<const std::vector<std::byte>> indices);
  /// Drops all records; afterwards the object can only be destroyed. Collective with global placement.
  void drop();

  /// J and K of some densities: begin, contract_kept (the records of this process, or its share by tickets,
  /// as IntegralFile::for_each), contract_rest for its share of all tasks, end. `threshold`: quartets that
  /// contribute less to every matrix element are left out; 0: none.
  void begin(const double* densities, std::span<const int> symmetry, double threshold);
  void contract_kept(const Tickets& tickets = {});
  void contract_rest(int thread, std::size_t first_task, std::size_t last_task);
  /// Partial J and K, [count][n][n] each, to be summed over processes.
  void end(double* coulomb, double* exchange);

  /// The error of the energy from rounding and leaving out integrals, for `count` densities [count][n][n]:
  /// one of closed shells, or those of two spins. Covers the records of this process (or its share by
  /// tickets), and the quartets that are not kept in the tasks that `tasks` names. The caller adds the errors
  /// of all processes.
  [[nodiscard]] EnergyError energy_error(const double* densities, std::size_t count, const Tickets& tasks,
                                         const Tickets& tickets = {});

  [[nodiscard]] IntegralCounts counts() const;
  [[nodiscard]] const Basis& basis() const noexcept { return *basis_; }
  [[nodiscard]] const Screening& screening() const noexcept { return *screening_; }
  [[nodiscard]] int threads() const noexcept { return int(makers_.size()); }

 private:
  /// The slabs of the kept part of a task that must be recomputed.
  struct Lost {
    std::uint32_t task = 0;
    bool whole[2] = {false, false};  // all large slabs, all small slabs
    std::vector<SlabRange> ranges;
  };

  void prepare(const IntegralFileOptions& options);
  [[nodiscard]] Selection selection(Selection::Quartets quartets) const;
  void in_threads(const std::function<void(int thread)>& work) const;
  static void collect(std::span<const SlabRange> found, std::vector<Lost>& lost);
  using Consume = std::function<void(int thread, const Slab& slab)>;
  void for_lost(std::span<const Lost> lost, const Consume& consume);
  void for_lost(int thread, const Lost& lost, const Consume& consume);

  std::shared_ptr<const Basis> basis_;
  std::shared_ptr<const Screening> screening_;
  std::shared_ptr<const KeepRule> rule_;
  std::vector<SlabMaker> makers_;  // one for each thread, as are the next two
  std::vector<std::unique_ptr<IntegralFile::Writer>> writers_;
  std::vector<std::unique_ptr<CoulombExchange>> sums_;
  std::unique_ptr<IntegralFile> file_;
  std::shared_ptr<const Accuracy> accuracy_;  // of the stored values
  double small_below_ = 0;
  std::unique_ptr<Densities> densities_;
  DensityBounds bounds_;
  std::vector<Lost> lost_;  // by task
};

}  // namespace outcore::chem
