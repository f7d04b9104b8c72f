// Two-electron integrals of a molecule, kept on disk or recomputed, and their contraction to J and K.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "outcore/chem/basis.hpp"
#include "outcore/chem/coulomb_exchange.hpp"
#include "outcore/chem/integral_file.hpp"
#include "outcore/chem/screening.hpp"

namespace outcore::chem {

struct IntegralCounts {
  std::uint64_t quartets = 0;  ///< of shells, computed
  std::uint64_t computed = 0;  ///< integrals in them
  std::uint64_t stored = 0;    ///< integrals kept
  std::uint64_t bytes = 0;     ///< they take, labels included
  std::uint64_t records = 0;
};

/// This process's share of the two-electron integrals. Tasks (Screening::tasks) are handed out by the caller,
/// to processes and to threads: each call below that names a thread may run together with others that name
/// another one. A failed call throws and leaves the object fit only for destruction.
class TwoElectron {
 public:
  TwoElectron(std::shared_ptr<const Basis> basis, std::shared_ptr<const Screening> screening, int threads);

  /// Stored integrals: open, store every task of this process's share, close; then contract any number of
  /// times.
  void open_store(const IntegralFileOptions& options);
  void store(int thread, std::size_t first_task, std::size_t last_task);
  void close_store();
  /// Partial J and K of the stored integrals: [count][n][n] each, to be summed over processes.
  void contract_stored(const double* densities, std::span<const int> symmetry, double* coulomb,
                       double* exchange);

  /// Recomputed integrals: begin, contract every task of this process's share, end.
  void begin_direct(const double* densities, std::span<const int> symmetry);
  void contract_direct(int thread, std::size_t first_task, std::size_t last_task);
  void end_direct(double* coulomb, double* exchange);

  [[nodiscard]] IntegralCounts counts() const;
  [[nodiscard]] const Basis& basis() const noexcept { return *basis_; }
  [[nodiscard]] const Screening& screening() const noexcept { return *screening_; }
  [[nodiscard]] int threads() const noexcept { return int(makers_.size()); }

 private:
  void begin(const double* densities, std::span<const int> symmetry);
  void sum_up(double scale, double* coulomb, double* exchange);

  std::shared_ptr<const Basis> basis_;
  std::shared_ptr<const Screening> screening_;
  std::vector<SlabMaker> makers_;  // one for each thread, as are the next two
  std::vector<std::unique_ptr<IntegralFile::Writer>> writers_;
  std::vector<std::unique_ptr<CoulombExchange>> sums_;
  std::unique_ptr<IntegralFile> file_;
  std::unique_ptr<Densities> densities_;
  DensityBounds bounds_;
  std::uint64_t stored_ = 0;
};

}  // namespace outcore::chem
