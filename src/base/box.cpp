#include "outcore/box.hpp"

#include <algorithm>
#include <cerrno>

#include "outcore/error.hpp"

namespace outcore {

Extents::Extents(std::span<const std::int64_t> values) : rank_(static_cast<int>(values.size())) {
  if (values.size() > max_rank)
    throw Error(EINVAL, {.attempted = "array of " + std::to_string(values.size()) + " dimensions",
                         .detail = "at most " + std::to_string(max_rank) + " are supported"});
  std::copy(values.begin(), values.end(), values_.begin());
}

Extents Extents::filled(int rank, std::int64_t value) {
  std::array<std::int64_t, max_rank> values;
  values.fill(value);
  return Extents(std::span(values.data(), static_cast<std::size_t>(rank)));
}

std::int64_t Extents::product() const noexcept {
  std::int64_t product = 1;
  for (const std::int64_t value : values()) product *= value;
  return product;
}

std::string Extents::text() const {
  std::string text;
  for (const std::int64_t value : values()) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "[" + text + "]";
}

Extents Box::shape() const noexcept {
  Extents shape = end;
  for (int i = 0; i < rank(); ++i) shape[i] = std::max<std::int64_t>(end[i] - begin[i], 0);
  return shape;
}

std::int64_t Box::volume() const noexcept {
  return shape().product();
}

bool Box::contains(const Box& other) const noexcept {
  if (other.rank() != rank()) return false;
  for (int i = 0; i < rank(); ++i)
    if (other.begin[i] < begin[i] || other.end[i] > end[i]) return false;
  return true;
}

std::string Box::text() const {
  std::string text;
  for (int i = 0; i < rank(); ++i)
    text += (i ? ", " : "") + std::to_string(begin[i]) + ":" + std::to_string(end[i]);
  return "[" + text + "]";
}

// Steps below one count as one, so that memory can be compared with the shape before anything is checked.
Extents Slices::shape() const noexcept {
  Extents shape = box.shape();
  for (int i = 0; i < shape.rank(); ++i)
    shape[i] = shape[i] > 0 ? (shape[i] - 1) / std::max<std::int64_t>(step[i], 1) + 1 : 0;
  return shape;
}

bool Slices::fits(const Extents& array_shape) const noexcept {
  const int rank = array_shape.rank();
  if (box.begin.rank() != rank || box.end.rank() != rank || step.rank() != rank) return false;
  for (int i = 0; i < rank; ++i)
    if (box.begin[i] < 0 || box.begin[i] > box.end[i] || box.end[i] > array_shape[i] || step[i] < 1 ||
        step[i] > max_step)
      return false;
  return true;
}

Slices Slices::within(const Box& part, Extents& first) const noexcept {
  const Box common = intersection(box, part);
  Slices inside(common.begin, common.end, step);
  first = box.begin;
  for (int i = 0; i < box.rank(); ++i) {
    first[i] = (inside.box.begin[i] - box.begin[i] + step[i] - 1) / step[i];
    inside.box.begin[i] = box.begin[i] + first[i] * step[i];
    inside.box.end[i] = std::max(inside.box.begin[i], inside.box.end[i]);
  }
  return inside;
}

Box intersection(const Box& a, const Box& b) noexcept {
  assert(a.rank() == b.rank());
  Box common = a;
  for (int i = 0; i < a.rank(); ++i) {
    common.begin[i] = std::max(a.begin[i], b.begin[i]);
    common.end[i] = std::max(common.begin[i], std::min(a.end[i], b.end[i]));
  }
  return common;
}

Extents row_major(const Extents& shape, std::size_t element_bytes) noexcept {
  Extents stride = shape;
  auto step = static_cast<std::int64_t>(element_bytes);
  for (int i = shape.rank() - 1; i >= 0; --i) {
    stride[i] = step;
    step *= shape[i];
  }
  return stride;
}

void check_permutation(std::span<const int> order, int rank) {
  unsigned seen = 0;
  for (const int axis : order)
    if (axis >= 0 && axis < rank) seen |= 1U << axis;
  if (static_cast<int>(order.size()) == rank && seen == (1U << rank) - 1U) return;
  std::string text;
  for (const int axis : order) text += (text.empty() ? "" : ", ") + std::to_string(axis);
  throw Error(EINVAL, {.attempted = "permutation [" + text + "]",
                       .detail = "it must name each of the " + std::to_string(rank) + " axes once"});
}

Extents permuted(const Extents& extents, std::span<const int> order) {
  check_permutation(order, extents.rank());
  Extents result = extents;
  for (int i = 0; i < extents.rank(); ++i) result[i] = extents[order[static_cast<std::size_t>(i)]];
  return result;
}

}  // namespace outcore
