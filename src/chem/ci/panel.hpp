// A part of a vector in memory: some rows, each with some of the columns that symmetry allows.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "chem/ci/space.hpp"

namespace outcore::chem::ci {

/// A matrix of the caller, with strides in elements.
template <class Element>
struct View {
  Element* data;
  std::int64_t rows, columns, row_stride, column_stride;
  [[nodiscard]] View transposed() const noexcept { return {data, columns, rows, column_stride, row_stride}; }
};

/// Rows of a vector. Each has the columns that symmetry allows, from its first column to the end of their
/// sector. Rows are alpha and columns beta strings, or the other way round if the panel is transposed. *Home*
/// rows have all columns; on them the same-spin part works. Several threads may load and unload different
/// elements at the same time.
class OUTCORE_SIBLING Panel {
 public:
  /// `home`, `others`: indices of rows, ascending, none in both. `begins`: for each of the others the index
  /// of its first column, or the end of the sector. In memory rows begin and end at multiples of `unit_bytes`
  /// from the beginning of their sector. Elements are undefined until cleared or loaded. Throws
  /// std::invalid_argument for invalid lists or an invalid unit, Error(ENOMEM) without memory.
  Panel(std::shared_ptr<const Space> space, std::span<const std::int64_t> home,
        std::span<const std::int64_t> others, std::span<const std::int64_t> begins, bool single,
        bool transposed, std::int64_t unit_bytes = 64);
  Panel(const Panel&) = delete;
  Panel& operator=(const Panel&) = delete;
  ~Panel();

  /// Assigns other rows; the memory is used again if it is enough. Elements are undefined. If it throws
  /// Error(ENOMEM), the panel has no rows afterwards.
  void assign(std::span<const std::int64_t> home, std::span<const std::int64_t> others,
              std::span<const std::int64_t> begins);

  [[nodiscard]] const Space& space() const noexcept { return *space_; }
  [[nodiscard]] bool single() const noexcept { return element_bytes_ == sizeof(float); }
  [[nodiscard]] bool transposed() const noexcept { return transposed_; }
  [[nodiscard]] std::int64_t nbytes() const noexcept { return elements_ * element_bytes_; }
  [[nodiscard]] const Strings& row_strings() const noexcept {
    return transposed_ ? space_->beta : space_->alpha;
  }
  [[nodiscard]] const Strings& column_strings() const noexcept {
    return transposed_ ? space_->alpha : space_->beta;
  }
  [[nodiscard]] std::span<const std::int64_t> rows() const noexcept { return rows_; }
  [[nodiscard]] std::span<const std::int64_t> home() const noexcept { return home_; }

  void clear(int threads);

  /// panel[row + i, column + j] = scale * tile[i, j], for those indices that the panel has. The tile must lie
  /// in one sector of rows, and in the sector of columns that belongs to it, else std::invalid_argument.
  template <class Element>
  void load(std::int64_t row, std::int64_t column, const View<const Element>& tile, double scale);
  /// tile[i, j] += scale * panel[row + i, column + j].
  template <class Element>
  void unload(std::int64_t row, std::int64_t column, const View<Element>& tile, double scale) const;

  /// Place of a string in `rows`, or -1.
  [[nodiscard]] std::int64_t row_place(std::int64_t row) const noexcept;
  /// First column of the row at a place, counted in its sector.
  [[nodiscard]] std::int64_t begin(std::int64_t place) const noexcept { return begins_[std::size_t(place)]; }
  /// An element, or where it would be; the column is counted in its sector.
  template <class Real>
  [[nodiscard]] Real* at(std::int64_t place, std::int64_t column) const noexcept {
    return reinterpret_cast<Real*>(data_) + (offsets_[std::size_t(place)] + column);
  }

  /// Home rows of an irrep: one after another, each with the columns of its sector.
  template <class Real>
  struct Home {
    Real* first;
    std::int64_t rows, stride;
  };
  [[nodiscard]] std::int64_t home_rows(int irrep) const noexcept {
    return home_offsets_[std::size_t(irrep) + 1] - home_offsets_[std::size_t(irrep)];
  }
  template <class Real>
  [[nodiscard]] Home<Real> home(int irrep) const noexcept {
    return {reinterpret_cast<Real*>(data_) + home_base_[std::size_t(irrep)], home_rows(irrep),
            home_stride_[std::size_t(irrep)]};
  }

  /// The memory of a row: `bytes` bytes from `data` on. In the whole row they begin at `first_byte`. Both
  /// ends are multiples of the unit.
  struct Strip {
    std::byte* data;
    std::int64_t first_byte, bytes;
  };
  [[nodiscard]] Strip strip(std::int64_t place) const noexcept;

 private:
  template <class Real, class Element, class Move>
  void each_run(std::int64_t row, std::int64_t column, const View<Element>& tile, const Move& move) const;
  void release() noexcept;

  [[nodiscard]] std::int64_t width(std::int64_t row) const noexcept;

  std::shared_ptr<const Space> space_;
  std::int64_t element_bytes_, unit_bytes_;
  bool transposed_;
  std::vector<std::int64_t> rows_, home_;
  std::vector<std::int64_t> begins_, offsets_;               // by row: its first column, place of column 0
  std::array<std::int64_t, max_groups + 1> home_offsets_{};  // in home_, by irrep
  std::array<std::int64_t, max_groups> home_base_{}, home_stride_{};
  std::int64_t elements_ = 0;
  std::byte* data_ = nullptr;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace outcore::chem::ci
