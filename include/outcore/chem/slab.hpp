// Slabs of two-electron integrals, and how they are made and packed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "outcore/chem/keep_rule.hpp"
#include "outcore/chem/screening.hpp"

namespace outcore::chem {

/// The integrals (ij|kl) of one triple of shells i, j, k with a list of shells l: the unit that is computed,
/// stored and contracted. Rows run over the functions of i, j, k (k fastest), columns over those of all l.
/// Rows are padded with zeros to a multiple of `lane` doubles. Values carry the factor 1/2 for each of i = j,
/// k = l, (ij) = (kl), so that a contraction needs no cases.
struct Slab {
  static constexpr std::size_t lane = 8;
  static constexpr std::size_t most_values = 1 << 16;  ///< of a slab, unless one shell l alone has more

  int i = 0, j = 0, k = 0;
  double bound = 0;    ///< largest Schwarz bound of its quartets
  bool small = false;  ///< see Selection::small_below
  int ni = 0, nj = 0, nk = 0;
  std::vector<std::uint16_t> shells;  ///< the l
  std::vector<std::int32_t> columns;  ///< basis function of each column
  std::size_t row_length = 0;         ///< columns, padded
  std::vector<double> storage;

  [[nodiscard]] std::size_t rows() const noexcept {
    return std::size_t(ni) * std::size_t(nj) * std::size_t(nk);
  }
  [[nodiscard]] double* row(std::size_t r) noexcept { return storage.data() + r * row_length; }
  [[nodiscard]] const double* row(std::size_t r) const noexcept { return storage.data() + r * row_length; }

  void label(const Basis& basis, int i_shell, int j_shell, int k_shell);
  void set_shells(const Basis& basis);  ///< columns and zeroed storage from `shells`
};

/// The largest |D| between two shells.
struct DensityBounds {
  std::vector<double> largest;  ///< [shells][shells]
  double overall = 0;
  double threshold = 0;  ///< what contributes less to every Fock matrix element is left out
  int shells = 0;
  [[nodiscard]] double at(int p, int q) const noexcept {
    return largest[std::size_t(p) * std::size_t(shells) + std::size_t(q)];
  }
};

/// Which quartets of a task a pass is about, and how they come.
struct Selection {
  enum class Part { all, kept, rest };

  const KeepRule* rule = nullptr;  ///< needed unless part is `all`
  Part part = Part::all;
  const DensityBounds* density = nullptr;  ///< null: no screening by the density
  double small_below = 0;                  ///< bounds below it and from it on come in different slabs
  double factor = 1;                       ///< of all values
};

/// Computes the slabs of tasks. One for each thread.
class SlabMaker {
 public:
  SlabMaker(const Basis& basis, const Screening& screening);

  /// Slabs of at most so many values from now on, unless one shell l alone has more.
  void limit(std::size_t values) noexcept { most_values_ = std::min(values, Slab::most_values); }

  /// Calls consume(slab) for every slab of the task that is not zero; always the same ones in the same order
  /// for the same selection.
  template <class Consume>
  void run(const Screening::Task& task, const Selection& selection, Consume&& consume) {
    for (int k = 0; k <= task.i; ++k) {
      select(task, k, selection);
      for (std::size_t at = 0; at < selected_.size();) {
        at = fill(task, k, at, selection);
        if (!slab_.shells.empty()) consume(slab_);
      }
    }
  }

  /// The slab of one triple of shells with a list of l, by falling bound(k, l); no shells if all is zero.
  /// Valid until the next call.
  const Slab& make(const Screening::Task& task, int k, std::span<const std::uint16_t> shells);

  [[nodiscard]] std::uint64_t quartets() const noexcept { return quartets_; }
  [[nodiscard]] std::uint64_t integrals() const noexcept { return integrals_; }

 private:
  struct Selected {
    std::uint16_t l;
    double bound;
    double least_bound;  // of quartets of components worth computing
  };

  void select(const Screening::Task& task, int k, const Selection& selection);
  std::size_t fill(const Screening::Task& task, int k, std::size_t from, const Selection& selection);
  bool fill_columns(const Screening::Task& task, int k, const Selected& selected, double factor,
                    std::size_t column);
  bool fill_block(const Basis::Component& a, const Basis::Component& b, const Basis::Component& c,
                  const Basis::Component& d, double factor, double least_bound, std::size_t column);

  const Basis& basis_;
  const Screening& screening_;
  Slab slab_;
  std::size_t most_values_ = Slab::most_values;
  std::vector<Selected> selected_;
  std::vector<double> quartet_, work_;
  std::uint64_t quartets_ = 0, integrals_ = 0;
};

/// Packs slabs: values become integers in units of `step`, in 1, 2, 3 or 4 bytes as each shell l needs, or an
/// exact double where 4 bytes do not reach. Every value is kept to within step / 2; shells l whose values all
/// round to zero are left out.
class SlabCodec {
 public:
  explicit SlabCodec(double step) : step_(step) {}

  /// Bytes written to `out`, 0 if nothing was left to store. `out` must have packed_bound(slab) bytes.
  std::size_t pack(const Basis& basis, const Slab& slab, std::byte* out);
  [[nodiscard]] static std::size_t packed_bound(const Slab& slab) noexcept;

  /// Fills `slab` from `in`; values come out in units of step(). Returns the bytes used; throws Error(EIO) if
  /// the bytes are not a slab of this basis within `size`.
  std::size_t unpack(const Basis& basis, const std::byte* in, std::size_t size, Slab& slab) const;

  [[nodiscard]] double step() const noexcept { return step_; }
  [[nodiscard]] std::uint64_t stored_integrals() const noexcept { return stored_; }

 private:
  double step_;
  std::uint64_t stored_ = 0;
  std::vector<double> largest_;
  std::vector<std::uint8_t> width_;
  std::vector<std::uint16_t> order_;
  std::vector<std::int32_t> source_;
};

}  // namespace outcore::chem
