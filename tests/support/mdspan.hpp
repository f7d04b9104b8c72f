// The mdspan of the reference implementation, and a layout without strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mdspan/mdspan.hpp>

namespace outcore::test {

template <class T, std::size_t rank, class Layout = Kokkos::layout_right>
using MdSpan = Kokkos::mdspan<T, Kokkos::dextents<std::int64_t, rank>, Layout>;
using ByStride = Kokkos::layout_stride::mapping<Kokkos::dextents<std::int64_t, 2>>;

/// Tiles of two by two: element (i, j) is at 2 * (i % 2) + j % 2 of tile (i / 2, j / 2). Both extents are
/// even.
struct TiledLayout {
  template <class Shape>
  struct mapping {
    using extents_type = Shape;
    using index_type = typename Shape::index_type;
    using size_type = typename Shape::size_type;
    using rank_type = typename Shape::rank_type;
    using layout_type = TiledLayout;

    Shape shape;

    const Shape& extents() const noexcept { return shape; }
    index_type required_span_size() const noexcept { return shape.extent(0) * shape.extent(1); }
    index_type operator()(index_type i, index_type j) const noexcept {
      return 4 * (i / 2 * (shape.extent(1) / 2) + j / 2) + 2 * (i % 2) + j % 2;
    }
    static constexpr bool is_always_unique() noexcept { return true; }
    static constexpr bool is_always_exhaustive() noexcept { return true; }
    static constexpr bool is_always_strided() noexcept { return false; }
    static constexpr bool is_unique() noexcept { return true; }
    static constexpr bool is_exhaustive() noexcept { return true; }
    static constexpr bool is_strided() noexcept { return false; }
    index_type stride(rank_type) const noexcept { return 0; }
  };
};

}  // namespace outcore::test
