#include "tensor/tiles.hpp"

#include <algorithm>
#include <cassert>
#include <complex>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/strided_plan.hpp"
#include "tensor/tile_kernels.hpp"

namespace outcore::tensor {
namespace {

template <class Element>
struct Parts {
  using Real = Element;
  static constexpr std::int64_t count = 1;
};
template <class T>
struct Parts<std::complex<T>> {
  using Real = T;
  static constexpr std::int64_t count = 2;
};

template <class Real>
const RowKernels<Real>& kernels() {
  if constexpr (std::is_same_v<Real, float>)
    return tile_kernels().of_float;
  else
    return tile_kernels().of_double;
}

/// Calls `function` with an element of one of the four types.
template <class Function>
void visit_floating(ElementType type, Function&& function) {
  visit(type, [&](auto zero) {
    if constexpr (!std::is_integral_v<decltype(zero)>)
      function(zero);
    else
      assert(false);
  });
}

// ---- permute ----

/// Elements of a block of a plane that is transposed in the first-level cache: along the target, and across
/// it.
constexpr std::int64_t block_bytes = 1024, block_rows = 16;

template <class Element>
class Permutation {
 public:
  using Real = typename Parts<Element>::Real;
  static constexpr auto size = static_cast<std::int64_t>(sizeof(Element));

  Permutation(const void* alpha, bool accumulate) : accumulate_(accumulate), rows_(kernels<Real>()) {
    std::memcpy(&alpha_, alpha, sizeof alpha_);
  }

  void run(std::byte* to, const std::byte* from, StridedPlan plan) const {
    if (plan.rank == 0) return row(to, from, 1);
    plan.form_plane();
    axes(to, from, plan, 0);
  }

 private:
  void axes(std::byte* to, const std::byte* from, const StridedPlan& plan, int first) const {
    const StridedAxis& axis = plan.axes[static_cast<std::size_t>(first)];
    const int left = plan.rank - first;
    if (left == 1) return line(to, from, axis);
    if (left == 2) {
      const StridedAxis& inner = plan.axes[static_cast<std::size_t>(first + 1)];
      if (inner.to == size && inner.from != size) return plane(to, from, axis, inner);
    }
    for (std::int64_t i = 0; i < axis.count; ++i)
      axes(to + i * axis.to, from + i * axis.from, plan, first + 1);
  }

  /// Copies where the target is contiguous along `inner` and the source is not: block by block, through the
  /// cache.
  void plane(std::byte* to, const std::byte* from, const StridedAxis& outer, const StridedAxis& inner) const {
    constexpr std::int64_t width = block_bytes / size;
    alignas(64) std::byte buffer[static_cast<std::size_t>(block_rows * block_bytes)];
    for (std::int64_t j = 0; j < inner.count; j += width)
      for (std::int64_t i = 0; i < outer.count; i += block_rows) {
        const std::int64_t columns = std::min(width, inner.count - j);
        const std::int64_t lines = std::min(block_rows, outer.count - i);
        copy_strided(buffer, {block_bytes, size}, from + i * outer.from + j * inner.from,
                     {outer.from, inner.from}, {lines, columns}, sizeof(Element));
        for (std::int64_t line = 0; line < lines; ++line)
          row(to + (i + line) * outer.to + j * size, buffer + line * block_bytes, columns);
      }
  }

  void line(std::byte* to, const std::byte* from, const StridedAxis& axis) const {
    if (axis.to == size && axis.from == size) return row(to, from, axis.count);
    for (std::int64_t i = 0; i < axis.count; ++i) row(to + i * axis.to, from + i * axis.from, 1);
  }

  /// Contiguous elements.
  void row(std::byte* to, const std::byte* from, std::int64_t count) const {
    auto* out = reinterpret_cast<Real*>(to);
    const auto* in = reinterpret_cast<const Real*>(from);
    const auto length = static_cast<std::size_t>(count * Parts<Element>::count);
    if constexpr (Parts<Element>::count == 2) {
      if (alpha_.imag() != 0) {
        const Real parts[2] = {alpha_.real(), alpha_.imag()};
        return (accumulate_ ? rows_.add_complex : rows_.scale_complex)(out, in, parts, length);
      }
    }
    (accumulate_ ? rows_.add : rows_.scale)(out, in, std::real(alpha_), length);
  }

  Element alpha_;
  bool accumulate_;
  const RowKernels<Real>& rows_;
};

// ---- pairs ----

constexpr std::int64_t turned_rows = 16;  // of a matrix, at a time

constexpr std::int64_t triangle(std::int64_t c) {
  return c * (c + 1) / 2;
}

/// Calls `work(first, last, turned)` for ranges of rows, with memory for their columns, [last - first][n].
template <class Element, class Work>
void by_rows(std::int64_t n, Work&& work) {
  std::vector<Element> turned(static_cast<std::size_t>(turned_rows * n));
  for (std::int64_t first = 0; first < n; first += turned_rows)
    work(first, std::min(first + turned_rows, n), turned.data());
}

/// Strides of the lines of `turned`, and of the columns of a matrix that lie in them.
template <class Element>
struct Turned {
  static constexpr auto size = static_cast<std::int64_t>(sizeof(Element));
  explicit Turned(std::int64_t n) : lines{size * n, size}, columns{size, size * n} {}
  Extents lines, columns;
};

template <class Element>
void pack(const Element* x, Element* plus, Element* minus, std::int64_t n, double diagonal) {
  using Real = typename Parts<Element>::Real;
  constexpr std::int64_t parts = Parts<Element>::count;
  const auto* real = reinterpret_cast<const Real*>(x);
  by_rows<Element>(n, [&](std::int64_t first, std::int64_t last, Element* turned) {
    const Turned<Element> strides(n);
    copy_strided(reinterpret_cast<std::byte*>(turned), strides.lines,
                 reinterpret_cast<const std::byte*>(x + first), strides.columns, {last - first, last},
                 sizeof(Element));
    for (std::int64_t c = first; c < last; ++c) {
      kernels<Real>().sum_difference(reinterpret_cast<Real*>(plus + triangle(c)),
                                     reinterpret_cast<Real*>(minus + triangle(c - 1)), real + c * n * parts,
                                     reinterpret_cast<const Real*>(turned + (c - first) * n), Real{1},
                                     static_cast<std::size_t>(c * parts));
      plus[triangle(c) + c] = static_cast<Real>(diagonal) * (x[c * n + c] + x[c * n + c]);
    }
  });
}

template <class Element>
void unpack(Element* x, const Element* plus, const Element* minus, std::int64_t n, double diagonal) {
  using Real = typename Parts<Element>::Real;
  constexpr std::int64_t parts = Parts<Element>::count;
  by_rows<Element>(n, [&](std::int64_t first, std::int64_t last, Element* turned) {
    for (std::int64_t c = first; c < last; ++c)
      kernels<Real>().sum_difference(reinterpret_cast<Real*>(x + c * n),
                                     reinterpret_cast<Real*>(turned + (c - first) * n),
                                     reinterpret_cast<const Real*>(plus + triangle(c)),
                                     reinterpret_cast<const Real*>(minus + triangle(c - 1)), Real(0.5),
                                     static_cast<std::size_t>(c * parts));
    for (std::int64_t c = first; c < last; ++c) {  // columns of this range that lie below it
      for (std::int64_t d = c + 1; d < last; ++d) turned[(c - first) * n + d] = x[d * n + c];
      turned[(c - first) * n + c] = static_cast<Real>(diagonal) * plus[triangle(c) + c];
    }
    const Turned<Element> strides(n);
    copy_strided(reinterpret_cast<std::byte*>(x + first), strides.columns,
                 reinterpret_cast<const std::byte*>(turned), strides.lines, {last - first, last},
                 sizeof(Element));
  });
}

}  // namespace

void permute(std::byte* to, const Extents& to_stride_bytes, const std::byte* from,
             const Extents& from_stride_bytes, const Extents& count, ElementType type, const void* alpha,
             bool accumulate) {
  for (const std::int64_t each : count.values())
    if (each <= 0) return;
  visit_floating(type, [&](auto zero) {
    using Element = decltype(zero);
    Element factor;
    std::memcpy(&factor, alpha, sizeof factor);
    if (factor == Element{1} && !accumulate)
      return copy_strided(to, to_stride_bytes, from, from_stride_bytes, count, sizeof(Element));
    Permutation<Element>(alpha, accumulate).run(to, from, {to_stride_bytes, from_stride_bytes, count});
  });
}

void pack_pairs(const std::byte* x, std::byte* plus, std::byte* minus, std::int64_t rows, std::int64_t n,
                ElementType type, double diagonal) {
  visit_floating(type, [&](auto zero) {
    using Element = decltype(zero);
    for (std::int64_t row = 0; row < rows; ++row)
      pack(reinterpret_cast<const Element*>(x) + row * n * n,
           reinterpret_cast<Element*>(plus) + row * triangle(n),
           reinterpret_cast<Element*>(minus) + row * triangle(n - 1), n, diagonal);
  });
}

void unpack_pairs(std::byte* x, const std::byte* plus, const std::byte* minus, std::int64_t rows,
                  std::int64_t n, ElementType type, double diagonal) {
  visit_floating(type, [&](auto zero) {
    using Element = decltype(zero);
    for (std::int64_t row = 0; row < rows; ++row)
      unpack(reinterpret_cast<Element*>(x) + row * n * n,
             reinterpret_cast<const Element*>(plus) + row * triangle(n),
             reinterpret_cast<const Element*>(minus) + row * triangle(n - 1), n, diagonal);
  });
}

}  // namespace outcore::tensor
