// Panels of the arrays of a product: matrices that boxes of arrays are copied into, whatever the order of
// axes. [M37]
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tensor/boxes.hpp"

namespace outcore::tensor {

/// A group of axes of a product, cut into cells. The boxes of a panel have one cell of each group.
struct OUTCORE_SIBLING Group {
  /// intervals: for each cell begin and end along each axis; members: the cells of each panel. Throws
  /// Error(EINVAL) if they do not fit.
  Group(int axes, std::vector<std::int64_t> intervals, std::vector<std::vector<std::int32_t>> members);

  int axes;
  std::vector<std::int64_t> intervals;
  std::vector<std::vector<std::int32_t>> members;
  std::vector<std::int64_t> cells;   ///< elements of each cell
  std::vector<std::int64_t> panels;  ///< elements of each panel

  [[nodiscard]] std::pair<std::int64_t, std::int64_t> interval(std::int32_t cell, int axis) const {
    const auto place = 2 * static_cast<std::size_t>(cell * axes + axis);
    return {intervals[place], intervals[place + 1]};
  }
  /// The first axis along which a cell has several elements, and the number of consecutive elements for one
  /// index of it.
  [[nodiscard]] std::pair<int, std::int64_t> divided(std::int32_t cell) const;
};

/// batch, rows, columns and inner indices
using Groups = std::array<Group, 4>;

/// The part of a panel of the result that one of several processes makes: a range of elements of one group (0
/// batch, 1 rows, 2 columns). It cuts cells only along the first axis along which they have several elements.
struct Share {
  int group;
  std::int64_t begin, end;
};

/// A panel of an array: the number of the panel of each of its groups.
using Panel = std::array<std::int32_t, 3>;

/// Matrices in memory: [batch][rows][columns], strides in bytes.
struct Matrices {
  std::byte* data = nullptr;
  std::array<std::int64_t, 3> count{}, stride{};

  [[nodiscard]] std::int64_t elements() const noexcept { return count[0] * count[1] * count[2]; }
  /// The part from `begin` to `end` along an axis.
  [[nodiscard]] Matrices part(int axis, std::int64_t begin, std::int64_t end) const noexcept;
  /// The matrices with rows and columns exchanged.
  [[nodiscard]] Matrices turned() const noexcept;
};

/// The layout of matrices for BLAS: whether columns (in place of rows) lie one after another, and the number
/// of elements from one to the next.
struct Leading {
  bool turned;
  std::int64_t elements;
};
/// None if elements lie side by side neither along rows nor along columns.
[[nodiscard]] OUTCORE_SIBLING std::optional<Leading> leading(const Matrices& matrices,
                                                             std::int64_t element_bytes) noexcept;

/// The axes and the zero cells of an array of a product.
struct Side {
  std::array<int, 3> groups;                   ///< those of the array, by number: batch, rows, columns
  std::vector<std::pair<int, int>> axes = {};  ///< of each axis its group (0 to 2) and position there
  std::vector<std::uint8_t> flags = {};  ///< which cells [batch][rows][columns] are not zero; empty: all
};

/// An array of a product, with gets and puts of its panels.
class PanelArray {
 public:
  PanelArray(const Groups& groups, const Side& side, Boxes& boxes, std::size_t element_bytes);

  /// The matrices of a panel (or of a share of it) in a buffer. The last axis of the array stays the fastest
  /// if it is an axis of the matrix.
  [[nodiscard]] Matrices matrices(std::byte* buffer, const Panel& panel, const Share* share = nullptr) const;
  /// Begins to get a panel into the buffer that `buffer()` returns. Returns its matrices, which are complete
  /// after a wait for all transfers. If possible, and if `in_place` allows it, the matrices lie in the array
  /// itself; then `buffer` is not called.
  template <class Buffer>
  [[nodiscard]] Matrices get(const Panel& panel, const Buffer& buffer, Waits& waits, bool in_place = true) {
    if (in_place)
      if (const auto found = lying_there(panel)) return *found;
    const Matrices found = matrices(buffer(), panel);
    bring(panel, found, waits);
    return found;
  }
  /// Gives a prefetch hint for a panel.
  void prefetch(const Panel& panel);
  /// Begins to put or add a panel, or a share of one; returns the number of its elements.
  std::int64_t put(const Panel& panel, const Matrices& from, bool add, Waits& waits,
                   const Share* share = nullptr);
  /// A panel in place, if it lies in the memory of this process as matrices without zero cells.
  [[nodiscard]] std::optional<Matrices> lying_there(const Panel& panel);
  /// The number of elements of a panel in cells that are not zero.
  [[nodiscard]] std::int64_t elements(const Panel& panel) const;

 private:
  /// A cell of a panel: its number in each group, and its position in the panel.
  struct Cell {
    std::array<std::int32_t, 3> number;
    std::array<std::int64_t, 3> begin;
  };
  template <class Visit>
  void each_cell(const Panel& panel, const Visit& visit) const;
  [[nodiscard]] const Group& group(int which) const {
    return groups_[static_cast<std::size_t>(side_.groups[static_cast<std::size_t>(which)])];
  }
  [[nodiscard]] std::int64_t size(int which, const Panel& panel) const {
    const auto number = static_cast<std::size_t>(panel[static_cast<std::size_t>(which)]);
    return group(which).panels[number];
  }
  [[nodiscard]] Box box_of(const Cell& cell) const;
  [[nodiscard]] bool cut(const Share& share, Cell& cell, Box& box) const;
  [[nodiscard]] Strided place_of(const Cell& cell, const Box& box, const Matrices& matrices) const;
  void bring(const Panel& panel, const Matrices& to, Waits& waits);

  const Groups& groups_;
  const Side& side_;
  Boxes& boxes_;
  std::int64_t element_bytes_;
  bool has_turned_ = false;  ///< rows lie side by side
};

}  // namespace outcore::tensor
