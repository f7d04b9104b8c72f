// A part of a vector in memory: some rows and some columns, those pairs of them that symmetry allows.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "chem/ci/space.hpp"

namespace outcore::chem::ci {

/// A matrix of the caller's with strides, in elements.
template <class Element>
struct View {
  Element* data;
  std::int64_t rows, columns, row_stride, column_stride;
  [[nodiscard]] View transposed() const noexcept { return {data, columns, rows, column_stride, row_stride}; }
};

/// C[rows, columns], for each irrep of rows a matrix over the columns of the irrep that belongs to it. Rows
/// are alpha and columns beta strings, or the other way round if the panel is transposed. Several threads may
/// load and unload different elements at a time.
class OUTCORE_SIBLING Panel {
 public:
  /// `rows` and `columns`: indices of strings, ascending. Elements are undefined until cleared or loaded.
  /// Throws std::invalid_argument if they do not ascend or are no indices, Error(ENOMEM) without memory.
  Panel(std::shared_ptr<const Space> space, std::span<const std::int64_t> rows,
        std::span<const std::int64_t> columns, bool single, bool transposed);
  Panel(const Panel&) = delete;
  Panel& operator=(const Panel&) = delete;
  ~Panel();

  /// Other rows and columns; memory is kept if there is enough. Elements are undefined. Without memory there
  /// are no rows and no columns afterwards.
  void assign(std::span<const std::int64_t> rows, std::span<const std::int64_t> columns);

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
  [[nodiscard]] std::span<const std::int64_t> columns() const noexcept { return columns_; }

  void clear(int threads);

  /// panel[row + i, column + j] = scale * tile[i, j], for those indices that the panel has. The tile lies in
  /// one sector of rows, and in the sector of columns that belongs to it, else std::invalid_argument.
  template <class Element>
  void load(std::int64_t row, std::int64_t column, const View<const Element>& tile, double scale);
  /// tile[i, j] += scale * panel[row + i, column + j].
  template <class Element>
  void unload(std::int64_t row, std::int64_t column, const View<Element>& tile, double scale) const;

  /// Place of a string in `rows`, or -1.
  [[nodiscard]] std::int64_t row_place(std::int64_t row) const noexcept;
  /// Place of a string among the panel's columns of its irrep, or -1.
  [[nodiscard]] std::int64_t column_place(std::int64_t column) const noexcept;
  /// Places in `rows` of an irrep are [first_row(irrep), first_row(irrep + 1)).
  [[nodiscard]] std::int64_t first_row(int irrep) const noexcept { return row_offsets_[std::size_t(irrep)]; }
  [[nodiscard]] std::int64_t first_column(int irrep) const noexcept {
    return column_offsets_[std::size_t(irrep)];
  }
  [[nodiscard]] std::int64_t columns_of(int irrep) const noexcept {
    return first_column(irrep + 1) - first_column(irrep);
  }
  /// The row at a place of a known irrep; its elements are those of the columns that belong to it.
  template <class Real>
  [[nodiscard]] Real* row(std::int64_t place, int irrep) const noexcept {
    return reinterpret_cast<Real*>(data_) + base_[std::size_t(irrep)] +
           (place - first_row(irrep)) * stride_[std::size_t(irrep)];
  }
  /// Elements from one row of an irrep to the next.
  [[nodiscard]] std::int64_t stride(int irrep) const noexcept { return stride_[std::size_t(irrep)]; }

 private:
  template <class Real, class Element, class Move>
  void each_run(std::int64_t row, std::int64_t column, const View<Element>& tile, const Move& move) const;
  void release() noexcept;

  std::shared_ptr<const Space> space_;
  std::int64_t element_bytes_;
  bool transposed_;
  std::vector<std::int64_t> rows_, columns_;
  std::array<std::int64_t, max_groups + 1> row_offsets_{}, column_offsets_{};
  std::array<std::int64_t, max_groups> base_{}, stride_{};
  std::int64_t elements_ = 0;
  std::byte* data_ = nullptr;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace outcore::chem::ci
