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
  /// Times the bound: the largest contribution to a Fock matrix element. For shells of several components the
  /// geometric mean of their contributions, weighted by time: each component is screened by itself.
  double density;
  double values;
  double seconds;  ///< to compute it, in a slab with others
  double bytes;    ///< in a record, labels included, the header of the slab not
  double weight;
  /// Its share of the bytes of its slab's header, which a record has for any part of the slab.
  double header;
  std::uint64_t draw;
};

struct Survey {
  std::vector<SurveyedQuartet> quartets;
  std::uint64_t draws = 0;
  /// Seconds for a value, summed over the draws: to pack it; to check, unpack and contract it; only to check
  /// and unpack it.
  double pack_seconds = 0, contract_seconds = 0, unpack_seconds = 0;
  double byte_seconds = 0;  ///< to copy a byte of a record in memory
  /// Number of tasks whose quartets were screened as in a pass that recomputes some of them, and the time of
  /// that. It does not shrink with the change of the density. The tasks are an even sample of all.
  std::uint64_t looked = 0;
  double look_seconds = 0, look_squares = 0;  ///< of each task, and their squares, summed
};

/// Draws triples of shells (i, j, k) with probabilities in proportion to the integrals that they stand for,
/// and measures their quartets (a part of them if there are many). One object for each thread; its
/// construction is not cheap.
class OUTCORE_SIBLING Surveyor {
 public:
  /// `accuracy`: of the stored values; `density`: an estimate of the molecule's. All must outlive this.
  Surveyor(const Basis& basis, const Screening& screening, const Accuracy& accuracy,
           const Densities& density);

  /// Makes draws first, first + stride, ... of one sequence for `seconds` of the processor, at least one and
  /// at most `most`. Where others have the processor, too, it ends after three times as long.
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
  [[nodiscard]] SurveyedQuartet measure(const Screening::Task& task, const Screening::Quartet& quartet,
                                        double weight);
  std::size_t pack(const Slab& slab);
  void look(std::uint64_t number, Survey& survey);
  struct Computed {
    double seconds;
    double share;  // of the shells' bound, that those of the components are, as a geometric mean by time
  };
  [[nodiscard]] Computed compute(const Screening::Task& task, const Screening::Quartet& quartet);
  template <class Use>
  void read_record(Use&& use);

  const Basis& basis_;
  const Screening& screening_;
  SlabMaker maker_;
  SlabCodec codec_;
  DensityBounds density_;
  CoulombExchange sums_;
  KeepRule asked_;  // for every quartet; it keeps none
  std::vector<double> block_, work_;
  std::vector<std::uint64_t> until_;  // integrals of the tasks up to and with each
  std::vector<std::byte> packed_;
  std::vector<std::byte> record_;  // packed slabs of the sample
  double alone_seconds_ = 0;       // for the contraction of each
  volatile std::uint32_t checked_ = 0;
  volatile std::size_t looked_ = 0;
};

}  // namespace outcore::chem
