// A measured sample of the work on two-electron integrals: the time to compute, store and contract them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/sibling.hpp"
#include "chem/hf/coulomb_exchange.hpp"
#include "chem/hf/slab.hpp"

namespace outcore::chem {

/// A quartet of shells of the sample. Sums over all quartets are estimated by sums of weight times value over
/// the sample, divided by the number of draws (Hansen and Hurwitz, Ann. Math. Stat. 14, 333 (1943)).
struct SurveyedQuartet {
  int bra_kinds, ket_kinds;  ///< pair_of_kinds
  double bound;              ///< Schwarz bound of all copies by symmetry
  double density;            ///< times the bound: the largest contribution to a Fock matrix element
  double values;
  double seconds;  ///< to compute it
  double bytes;    ///< in a record, labels included
  double weight;
};

struct Survey {
  std::vector<SurveyedQuartet> quartets;
  std::uint64_t draws = 0;
  /// Seconds for a value, summed over the draws: to pack it; to check, unpack and contract it; only to check
  /// and unpack it.
  double pack_seconds = 0, contract_seconds = 0, unpack_seconds = 0;
};

/// Draws triples of shells (i, j, k) with probabilities in proportion to the integrals that they stand for,
/// and measures their quartets (a part of them if there are many). One object for each thread; its
/// construction is not cheap.
class OUTCORE_SIBLING Surveyor {
 public:
  /// `accuracy`: of the stored values; `density`: an estimate of the molecule's. All must outlive this.
  Surveyor(const Basis& basis, const Screening& screening, const Accuracy& accuracy,
           const Densities& density);

  /// Makes draws first, first + stride, ... of one sequence for `seconds`, at least one and at most `most`.
  [[nodiscard]] Survey run(double seconds, std::uint64_t most, std::uint64_t first, std::uint64_t stride);

 private:
  struct Triple {
    const Screening::Task* task;
    int k;
    double share;  // of all integrals
    std::vector<Screening::Quartet> quartets;
  };

  [[nodiscard]] Triple draw(std::uint64_t number) const;
  void measure(const Triple& triple, Survey& survey);
  template <class Use>
  void read_record(Use&& use);

  const Basis& basis_;
  const Screening& screening_;
  SlabMaker maker_;
  SlabCodec codec_;
  DensityBounds density_;
  CoulombExchange sums_;
  std::vector<std::uint64_t> until_;  // integrals of the tasks up to and with each
  std::vector<std::byte> packed_;
  std::vector<std::byte> record_;  // packed slabs of the sample
  double alone_seconds_ = 0;       // for the contraction of each
  volatile std::uint32_t checked_ = 0;
};

}  // namespace outcore::chem
