// Panels of the arrays of a product: matrices into which boxes of arrays are brought, in whatever order of
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

/// A group of axes of a product, cut into cells. A panel is made of such boxes.
struct OUTCORE_SIBLING Group {
  /// intervals: of each cell for each axis begin and end; members: of each panel its cells. Throws
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
  /// The first axis along which a cell has several elements, and how many lie side by side for one of its
  /// places.
  [[nodiscard]] std::pair<int, std::int64_t> divided(std::int32_t cell) const;
};

/// batch, rows, columns and inner indices
using Groups = std::array<Group, 4>;

/// The part of a panel of the result that one of several processes makes: a range of elements of one group (0
/// batch, 1 rows, 2 columns). It cuts cells along the first axis along which they have several elements,
/// only.
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
  /// Those from `begin` to `end` along an axis.
  [[nodiscard]] Matrices part(int axis, std::int64_t begin, std::int64_t end) const noexcept;
  /// With rows and columns exchanged.
  [[nodiscard]] Matrices turned() const noexcept;
};

/// How BLAS finds the elements of matrices: whether columns lie one after another, in place of rows, and
/// elements between two of them.
struct Leading {
  bool turned;
  std::int64_t elements;
};
/// None if neither rows nor columns have their elements side by side.
[[nodiscard]] OUTCORE_SIBLING std::optional<Leading> leading(const Matrices& matrices,
                                                             std::int64_t element_bytes) noexcept;

/// Which axes and zeros an array of a product has.
struct Side {
  std::array<int, 3> groups;                   ///< those of the array, by number: batch, rows, columns
  std::vector<std::pair<int, int>> axes = {};  ///< of each axis its group (0 to 2 of `groups`), and its place
  std::vector<std::uint8_t> flags = {};  ///< which cells [batch][rows][columns] are not zero; empty: all
};

/// An array of a product whose panels come and go.
class PanelArray {
 public:
  PanelArray(const Groups& groups, const Side& side, Boxes& boxes, std::size_t element_bytes);

  /// Matrices in a buffer, laid out so that the last axis of the array stays the fastest where that is an
  /// axis of the matrix; of a share of the panel, if one is given.
  [[nodiscard]] Matrices matrices(std::byte* buffer, const Panel& panel, const Share* share = nullptr) const;
  /// Starts to bring a panel into the buffer that `buffer()` returns; the matrices, which are complete when
  /// all is waited for. They lie in the array itself where that is possible and `in_place` allows it: then no
  /// buffer is asked for.
  template <class Buffer>
  [[nodiscard]] Matrices get(const Panel& panel, const Buffer& buffer, Waits& waits, bool in_place = true) {
    if (in_place)
      if (const auto found = lying_there(panel)) return *found;
    const Matrices found = matrices(buffer(), panel);
    bring(panel, found, waits);
    return found;
  }
  /// Hints that a panel will be wanted soon.
  void prefetch(const Panel& panel);
  /// Starts to put or add a panel, or a share of one; returns its elements.
  std::int64_t put(const Panel& panel, const Matrices& from, bool add, Waits& waits,
                   const Share* share = nullptr);
  /// A panel where it lies in the memory of this process, if it is one of matrices there without zeros.
  [[nodiscard]] std::optional<Matrices> lying_there(const Panel& panel);
  /// Of a whole panel those that are not zero.
  [[nodiscard]] std::int64_t elements(const Panel& panel) const;

 private:
  /// A cell of a panel: its number in each group, and where it begins in the panel.
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
