#include "tensor/panels.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "outcore/error.hpp"

namespace outcore::tensor {

Group::Group(int its_axes, std::vector<std::int64_t> its_intervals,
             std::vector<std::vector<std::int32_t>> its_members)
    : axes(its_axes), intervals(std::move(its_intervals)), members(std::move(its_members)) {
  const auto refuse = [](const char* why) {
    throw Error(EINVAL, {.attempted = "make a group of axes", .detail = why});
  };
  std::int32_t count = 0;
  for (const auto& panel : members)
    for (const std::int32_t cell : panel) {
      if (cell < 0) refuse("a panel has a negative cell number");
      count = std::max(count, cell + 1);
    }
  if (axes < 0 || intervals.size() < 2 * static_cast<std::size_t>(axes) * static_cast<std::size_t>(count))
    refuse("a panel has a cell that does not exist");
  for (std::int32_t cell = 0; cell < count; ++cell) {
    std::int64_t elements = 1;
    for (int axis = 0; axis < axes; ++axis) {
      const auto [begin, end] = interval(cell, axis);
      elements *= end - begin;
    }
    cells.push_back(elements);
  }
  for (const auto& panel : members) {
    std::int64_t elements = 0;
    for (const std::int32_t cell : panel) elements += cells[static_cast<std::size_t>(cell)];
    panels.push_back(elements);
  }
}

std::pair<int, std::int64_t> Group::divided(std::int32_t cell) const {
  std::int64_t inner = cells[static_cast<std::size_t>(cell)];
  for (int axis = 0; axis < axes; ++axis) {
    const auto [begin, end] = interval(cell, axis);
    if (end - begin > 1) return {axis, inner / (end - begin)};
  }
  return {0, 1};
}

std::optional<Leading> leading(const Matrices& matrices, std::int64_t element_bytes) noexcept {
  const auto along = [&](std::size_t lines, std::size_t inner) -> std::int64_t {
    const std::int64_t stride = matrices.stride[lines], length = matrices.count[inner];
    if (matrices.stride[inner] != element_bytes && length != 1) return 0;
    if (matrices.count[lines] == 1) return std::max<std::int64_t>(1, length);
    return stride % element_bytes == 0 && stride >= length * element_bytes ? stride / element_bytes : 0;
  };
  if (const std::int64_t rows = along(1, 2)) return Leading{false, rows};
  if (const std::int64_t columns = along(2, 1)) return Leading{true, columns};
  return std::nullopt;
}

Matrices Matrices::part(int axis, std::int64_t begin, std::int64_t end) const noexcept {
  Matrices result = *this;
  const auto which = static_cast<std::size_t>(axis);
  result.data += begin * stride[which];
  result.count[which] = end - begin;
  return result;
}

Matrices Matrices::turned() const noexcept {
  Matrices result = *this;
  std::swap(result.count[1], result.count[2]);
  std::swap(result.stride[1], result.stride[2]);
  return result;
}

PanelArray::PanelArray(const Groups& groups, const Side& side, Boxes& boxes, std::size_t element_bytes)
    : groups_(groups), side_(side), boxes_(boxes), element_bytes_(static_cast<std::int64_t>(element_bytes)) {
  has_turned_ = !side_.axes.empty() && side_.axes.back().first == 1;
}

Matrices PanelArray::matrices(std::byte* buffer, const Panel& panel, const Share* share) const {
  Matrices result{.data = buffer};
  for (int which = 0; which < 3; ++which) result.count[static_cast<std::size_t>(which)] = size(which, panel);
  if (share) result.count[static_cast<std::size_t>(share->group)] = share->end - share->begin;
  const auto [batch, rows, columns] = result.count;
  result.stride = {rows * columns * element_bytes_, has_turned_ ? element_bytes_ : columns * element_bytes_,
                   has_turned_ ? rows * element_bytes_ : element_bytes_};
  return result;
}

template <class Visit>
void PanelArray::each_cell(const Panel& panel, const Visit& visit) const {
  const auto members = [&](int which) -> const std::vector<std::int32_t>& {
    return group(which).members[static_cast<std::size_t>(panel[static_cast<std::size_t>(which)])];
  };
  const auto cells = [&](int which) { return static_cast<std::int64_t>(group(which).cells.size()); };
  Cell cell{};
  cell.begin[0] = 0;
  for (const std::int32_t batch : members(0)) {
    cell.begin[1] = 0;
    for (const std::int32_t row : members(1)) {
      cell.begin[2] = 0;
      for (const std::int32_t column : members(2)) {
        cell.number = {batch, row, column};
        const std::int64_t place = (batch * cells(1) + row) * cells(2) + column;
        if (side_.flags.empty() || side_.flags[static_cast<std::size_t>(place)]) visit(cell);
        cell.begin[2] += group(2).cells[static_cast<std::size_t>(column)];
      }
      cell.begin[1] += group(1).cells[static_cast<std::size_t>(row)];
    }
    cell.begin[0] += group(0).cells[static_cast<std::size_t>(batch)];
  }
}

Box PanelArray::box_of(const Cell& cell) const {
  const auto rank = static_cast<int>(side_.axes.size());
  Box box{Extents::filled(rank, 0), Extents::filled(rank, 0)};
  for (int axis = 0; axis < rank; ++axis) {
    const auto [which, place] = side_.axes[static_cast<std::size_t>(axis)];
    std::tie(box.begin[axis], box.end[axis]) =
        group(which).interval(cell.number[static_cast<std::size_t>(which)], place);
  }
  return box;
}

/// Restricts a cell and its box to a share, and finds where it begins in the share; false: the share has
/// nothing of it.
bool PanelArray::cut(const Share& share, Cell& cell, Box& box) const {
  const auto which = static_cast<std::size_t>(share.group);
  const Group& its = group(share.group);
  const std::int32_t number = cell.number[which];
  const std::int64_t elements = its.cells[static_cast<std::size_t>(number)], place = cell.begin[which];
  const std::int64_t first = std::max(place, share.begin), last = std::min(place + elements, share.end);
  if (first >= last) return false;
  cell.begin[which] = first - share.begin;
  if (last - first == elements) return true;
  const auto [divided, inner] = its.divided(number);
  const auto found = std::find(side_.axes.begin(), side_.axes.end(), std::pair(share.group, divided));
  const auto axis = static_cast<int>(found - side_.axes.begin());
  box.end[axis] = box.begin[axis] + (last - place) / inner;
  box.begin[axis] += (first - place) / inner;
  return true;
}

/// Where the elements of a box lie in the matrices of its panel.
Strided PanelArray::place_of(const Cell& cell, const Box& box, const Matrices& matrices) const {
  Strided result{matrices.data, Extents::filled(box.rank(), 0)};
  for (std::size_t which = 0; which < 3; ++which) {
    result.data += cell.begin[which] * matrices.stride[which];
    std::int64_t stride = matrices.stride[which];
    for (int place = group(static_cast<int>(which)).axes - 1; place >= 0; --place) {
      const auto found =
          std::find(side_.axes.begin(), side_.axes.end(), std::pair(static_cast<int>(which), place));
      const auto axis = static_cast<int>(found - side_.axes.begin());
      result.stride_bytes[axis] = stride;
      stride *= box.end[axis] - box.begin[axis];
    }
  }
  return result;
}

// ---- transfers ----

void PanelArray::bring(const Panel& panel, const Matrices& to, Waits& waits) {
  if (!side_.flags.empty()) std::memset(to.data, 0, static_cast<std::size_t>(to.elements() * element_bytes_));
  each_cell(panel, [&](const Cell& cell) {
    const Box box = box_of(cell);
    boxes_.get(box, place_of(cell, box, to), waits);
  });
}

void PanelArray::prefetch(const Panel& panel) {
  std::vector<Box> boxes;
  each_cell(panel, [&](const Cell& cell) { boxes.push_back(box_of(cell)); });
  boxes_.prefetch(boxes);
}

std::int64_t PanelArray::put(const Panel& panel, const Matrices& from, bool add, Waits& waits,
                             const Share* share) {
  std::int64_t elements = 0;
  each_cell(panel, [&](Cell cell) {
    Box box = box_of(cell);
    if (share && !cut(*share, cell, box)) return;
    elements += box.volume();
    boxes_.put(box, place_of(cell, box, from), add, waits);
  });
  return elements;
}

std::int64_t PanelArray::elements(const Panel& panel) const {
  if (side_.flags.empty()) return size(0, panel) * size(1, panel) * size(2, panel);
  std::int64_t elements = 0;
  each_cell(panel, [&](const Cell& cell) {
    std::int64_t product = 1;
    for (int which = 0; which < 3; ++which)
      product *= group(which).cells[static_cast<std::size_t>(cell.number[static_cast<std::size_t>(which)])];
    elements += product;
  });
  return elements;
}

std::optional<Matrices> PanelArray::lying_there(const Panel& panel) {
  if (!side_.flags.empty()) return std::nullopt;
  Cell cell{};
  for (int which = 0; which < 3; ++which) {
    const auto place = static_cast<std::size_t>(which);
    const auto& members = group(which).members[static_cast<std::size_t>(panel[place])];
    if (members.size() != 1) return std::nullopt;
    cell.number[place] = members.front();
  }
  const Box box = box_of(cell);
  const auto found = boxes_.view(box);
  const std::int64_t aligned = std::min<std::int64_t>(element_bytes_, 8);
  if (!found || reinterpret_cast<std::intptr_t>(found->data) % aligned != 0) return std::nullopt;
  Matrices result{.data = found->data};
  for (int which = 0; which < 3; ++which) {
    std::int64_t count = 1, stride = element_bytes_;
    for (int place = group(which).axes - 1; place >= 0; --place) {
      const auto at = std::find(side_.axes.begin(), side_.axes.end(), std::pair(which, place));
      const auto axis = static_cast<int>(at - side_.axes.begin());
      const std::int64_t extent = box.end[axis] - box.begin[axis], own = found->stride_bytes[axis];
      if (extent == 1) continue;
      if (own % element_bytes_ != 0) return std::nullopt;
      if (count == 1)
        stride = own;
      else if (own != stride * count)
        return std::nullopt;
      count *= extent;
    }
    result.count[static_cast<std::size_t>(which)] = count;
    result.stride[static_cast<std::size_t>(which)] = stride;
  }
  if (!leading(result, element_bytes_)) return std::nullopt;
  return result;
}

}  // namespace outcore::tensor
