// The order in which elements of two strided pieces of memory are visited: axes of one element are dropped,
// the target is visited in order, and contiguous axes are joined.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "outcore/box.hpp"

namespace outcore {

struct StridedAxis {
  std::int64_t count, to, from;  ///< elements; strides in bytes
};

struct StridedPlan {
  std::array<StridedAxis, max_rank> axes;  ///< from the outermost
  int rank = 0;

  StridedPlan(const Extents& to, const Extents& from, const Extents& count) {
    for (int i = 0; i < count.rank(); ++i)
      if (count[i] != 1) axes[static_cast<std::size_t>(rank++)] = {count[i], to[i], from[i]};
    std::stable_sort(axes.begin(), axes.begin() + rank, [](const StridedAxis& a, const StridedAxis& b) {
      return std::abs(a.to) > std::abs(b.to);
    });
    int last = 0;
    for (int i = 1; i < rank; ++i) {
      StridedAxis& outer = axes[static_cast<std::size_t>(last)];
      const StridedAxis& inner = axes[static_cast<std::size_t>(i)];
      if (outer.to == inner.to * inner.count && outer.from == inner.from * inner.count)
        outer = {outer.count * inner.count, inner.to, inner.from};
      else
        axes[static_cast<std::size_t>(++last)] = inner;
    }
    rank = std::min(rank, last + 1);
  }

  /// The axis along which the source is contiguous comes next to last, so that the last two form a plane.
  void form_plane() {
    const auto begin = axes.begin();
    const auto fastest = std::min_element(
        begin, begin + rank,
        [](const StridedAxis& a, const StridedAxis& b) { return std::abs(a.from) < std::abs(b.from); });
    if (fastest - begin < rank - 2) std::rotate(fastest, fastest + 1, begin + rank - 1);
  }
};

}  // namespace outcore
