// Slabs of two-electron integrals, and how they are made and packed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "chem/hf/accuracy.hpp"
#include "chem/hf/keep_rule.hpp"
#include "chem/hf/screening.hpp"

namespace outcore::chem {

/// The integrals (ij|kl) of one triple of shells i, j, k with a list of shells l: the unit that is computed,
/// stored and contracted. Rows run over the functions of i, j, k (k fastest), columns over those of all l. A
/// slab may also have only some pairs of functions of i and j. Rows are padded with zeros to a multiple of
/// `lane` doubles. Values carry the factor 1/2 for each of i = j, k = l, (ij) = (kl), so that a contraction
/// needs no cases.
struct Slab {
  static constexpr std::size_t lane = 8;
  static constexpr std::size_t max_values = 1 << 16;  ///< of a slab, unless it has one pair and one shell l

  int i = 0, j = 0, k = 0;
  double bound = 0;    ///< largest Schwarz bound of its quartets
  bool small = false;  ///< see Selection::small_below
  int ni = 0, nj = 0, nk = 0;
  int first_pair = 0, pairs = 0;      ///< pairs of functions a of i and b of j, numbered a nj + b
  std::vector<std::uint16_t> shells;  ///< the shells l
  std::vector<std::int32_t> columns;  ///< basis function of each column
  std::size_t row_length = 0;         ///< columns, padded
  std::vector<double> storage;
  /// For each shell l the weight by which SlabMaker has multiplied its values (Screening). Empty once
  /// unpacked.
  std::vector<double> weights;
  std::vector<double>
      steps;  ///< by column, once unpacked: values have an error of up to half of it; 0: exact

  [[nodiscard]] std::size_t rows() const noexcept { return std::size_t(pairs) * std::size_t(nk); }
  [[nodiscard]] double* row(std::size_t r) noexcept { return storage.data() + r * row_length; }
  [[nodiscard]] const double* row(std::size_t r) const noexcept { return storage.data() + r * row_length; }

  void label(const Basis& basis, int i_shell, int j_shell, int k_shell);
  void set_shells(const Basis& basis);                    ///< columns and zeroed storage from `shells`
  void set_part(const Slab& whole, int from, int count);  ///< some pairs of another slab
};

/// The largest |D| of each pair of shells.
struct DensityBounds {
  std::vector<double> largest;  ///< [shells][shells]
  double overall = 0;
  double threshold = 0;  ///< leaves out integrals that contribute less to every Fock matrix element
  int shells = 0;
  [[nodiscard]] double at(int p, int q) const noexcept {
    return largest[std::size_t(p) * std::size_t(shells) + std::size_t(q)];
  }
};

/// The quartets of a task that a pass needs, and the slabs in which they come.
struct Selection {
  enum class Quartets { all, kept, rest };

  const KeepRule* rule = nullptr;  ///< needed unless quartets is `all`
  Quartets quartets = Quartets::all;
  const DensityBounds* density = nullptr;  ///< null: no screening by the density
  double small_below = 0;  ///< quartets with bounds below it and others come in different slabs
  bool at_random = false;  ///< only quartets that were kept at random and stand for others
};

/// Computes the slabs of tasks. One object for each thread.
class SlabMaker {
 public:
  SlabMaker(const Basis& basis, const Screening& screening);

  /// Limits the number of values of further slabs, unless one pair and one shell l alone have more.
  void limit(std::size_t values) noexcept { max_values_ = std::min(values, Slab::max_values); }

  /// Calls consume(slab) for every nonzero slab of the task. The same selection always gives the same slabs
  /// in the same order.
  template <class Consume>
  void run(const Screening::Task& task, const Selection& selection, Consume&& consume) {
    rare_ = screening_.rare(task.i, task.j);
    for (int k = 0; k <= task.i; ++k) {
      select(task, k, selection);
      for (std::size_t at = 0; at < selected_.size();) {
        at = fill(task, k, at, selection);
        if (slab_.shells.empty()) continue;
        const int pairs = pairs_of_part();
        if (pairs >= slab_.pairs) {
          consume(slab_);
          continue;
        }
        for (int from = 0; from < slab_.pairs; from += pairs) {
          part_.set_part(slab_, from, std::min(pairs, slab_.pairs - from));
          consume(part_);
        }
      }
    }
  }

  /// Number of selected quartets of the task; none is computed.
  [[nodiscard]] std::size_t count(const Screening::Task& task, const Selection& selection);

  /// The slab of one triple of shells with a list of quartets; it has no shells if all values are zero. Valid
  /// until the next call.
  const Slab& make(const Screening::Task& task, int k, std::span<const Screening::Quartet> quartets);

  [[nodiscard]] std::uint64_t quartets() const noexcept { return quartets_; }
  [[nodiscard]] std::uint64_t integrals() const noexcept { return integrals_; }

 private:
  struct Selected {
    Screening::Quartet quartet;
    double bound;      // of all copies together
    double min_bound;  // of quartets of components worth computing, each copy weighted
  };

  void select(const Screening::Task& task, int k, const Selection& selection);
  /// The most pairs that a part of the present slab may have.
  [[nodiscard]] int pairs_of_part() const noexcept {
    const std::size_t of_one = std::size_t(slab_.nk) * slab_.columns.size();
    return int(std::max<std::size_t>(1, std::min(max_values_ / of_one, std::size_t(slab_.pairs))));
  }
  std::size_t fill(const Screening::Task& task, int k, std::size_t from, const Selection& selection);
  bool fill_columns(const Screening::Task& task, int k, const Selected& selected, std::size_t column);
  bool fill_block(const Basis::Component& a, const Basis::Component& b, const Basis::Component& c,
                  const Basis::Component& d, double factor, double min_bound, std::size_t column);

  const Basis& basis_;
  const Screening& screening_;
  Slab slab_, part_;
  std::size_t max_values_ = Slab::max_values;
  std::vector<Screening::Quartet> rare_;  // of the task
  std::vector<Selected> selected_;
  std::vector<double> quartet_, work_;
  std::uint64_t quartets_ = 0, integrals_ = 0;
};

/// Packs slabs: values become integers in units of a step, of 1, 2, 3 or 4 bytes as each shell l needs, or
/// exact doubles if 4 bytes are not enough. Each shell l of a slab has its own step, no larger than the
/// quartet's (Accuracy) and as fine as the bytes allow. Shells l whose values are all below the quartet's
/// limit are left out at random: one whose largest value is m is kept with probability m / limit, and its
/// values are then multiplied by limit / m, so that the omission gives no bias (see Screening).
///
/// The integer of a value v is the nearest to v / step - d, and v comes back as (integer + d) * step, where
/// the dither d is pseudo-random, uniform between -1/2 and 1/2 (subtractive dither: Lipshitz, Wannamaker,
/// Vanderkooy, J. Audio Eng. Soc. 40, 355 (1992)): the error of every value is at most step / 2, uniform and
/// independent of the value. So equal integrals (symmetric molecules have many) have different errors, and
/// small ones are not biased towards zero.
class SlabCodec {
 public:
  /// `accuracy` must outlive this.
  explicit SlabCodec(const Accuracy& accuracy) : accuracy_(accuracy) {}

  /// Returns the bytes written to `out`; 0 if all values were left out. `out` must have packed_bound(slab)
  /// bytes. Unpacks the result and compares: throws Error(EDOM) if a value (one that is not finite, say) does
  /// not come back to within half its step.
  std::size_t pack(const Basis& basis, const Slab& slab, std::byte* out);
  [[nodiscard]] static std::size_t packed_bound(const Slab& slab) noexcept;

  /// Fills `slab` from `in`. Returns the bytes used; throws Error(EIO) if the bytes are not a slab of this
  /// basis within `size`.
  static std::size_t unpack(const Basis& basis, const std::byte* in, std::size_t size, Slab& slab);

  [[nodiscard]] std::uint64_t stored_integrals() const noexcept { return stored_; }

 private:
  struct Kept {
    std::int32_t column;  // first one of the shell in the slab
    std::uint16_t l;
    std::uint8_t width, code;
    double weight;
  };
  void choose(const Basis& basis, const Slab& slab);
  void verify(const Slab& slab, std::size_t row) const;

  const Accuracy& accuracy_;
  std::uint64_t stored_ = 0;
  std::vector<Kept> kept_;  // in the order of packing
  // For the columns in the order of the slab, and in packed order.
  std::vector<double> largest_, steps_, per_step_, weights_, row_;
  std::vector<std::int32_t> source_;
};

}  // namespace outcore::chem
