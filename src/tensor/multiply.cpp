#include "tensor/multiply.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "outcore/error.hpp"

namespace outcore::tensor {
namespace {

constexpr std::int64_t few = 64;  // multiplications of a matrix, up to which a call of BLAS takes longer
constexpr std::int64_t most = std::numeric_limits<int>::max();  // BLAS counts with 32 bits

template <class Element>
class Product {
 public:
  Product(const Blas& blas, const void* alpha) : blas_(blas) { std::memcpy(&alpha_, alpha, sizeof alpha_); }

  void operator()(const Matrices& left, const Matrices& right, const Matrices& out, bool add) const {
    if (out.elements() == 0) return;
    const std::int64_t inner = left.count[2];
    // With alpha = 0 BLAS reads no elements, but NaN and infinity must pass on to the result.
    if (inner * out.count[1] * out.count[2] == 1) return numbers(left, right, out, add);
    if (inner * out.count[1] * out.count[2] <= few || alpha_ == Element{} || !blas_.gemm<Element>())
      return loops(left, right, out, add);
    for (std::int64_t b = 0; b < out.count[0]; ++b)
      call(left.part(0, b, b + 1), right.part(0, b, b + 1), out.part(0, b, b + 1), add);
  }

 private:
  static constexpr std::integral_constant<std::int64_t, sizeof(Element)> size{};

  static Element& at(const Matrices& matrix, std::int64_t i, std::int64_t j) {
    return *reinterpret_cast<Element*>(matrix.data + i * matrix.stride[1] + j * matrix.stride[2]);
  }

  /// Matrices of one element each.
  void numbers(const Matrices& left, const Matrices& right, const Matrices& out, bool add) const {
    const auto each = [&](auto x_stride, auto y_stride, auto z_stride) {
      for (std::int64_t b = 0; b < out.count[0]; ++b) {
        const Element product = alpha_ * *reinterpret_cast<const Element*>(left.data + b * x_stride) *
                                *reinterpret_cast<const Element*>(right.data + b * y_stride);
        Element& element = *reinterpret_cast<Element*>(out.data + b * z_stride);
        element = add ? element + product : product;
      }
    };
    if (left.stride[0] == size && right.stride[0] == size && out.stride[0] == size)
      each(size, size, size);
    else
      each(left.stride[0], right.stride[0], out.stride[0]);
  }

  void loops(const Matrices& left, const Matrices& right, const Matrices& out, bool add) const {
    const bool along_rows = out.count[2] > 1 && out.stride[2] == size && right.stride[2] == size;
    for (std::int64_t b = 0; b < out.count[0]; ++b)
      for (std::int64_t i = 0; i < out.count[1]; ++i) {
        const std::byte* x = left.data + b * left.stride[0] + i * left.stride[1];
        std::byte* z = out.data + b * out.stride[0] + i * out.stride[1];
        if (along_rows)
          row(x, left.stride[2], right.data + b * right.stride[0], right, z, out.count[2], add);
        else
          numbers_of_row(x, left.stride[2], right.data + b * right.stride[0], right, z, out, add);
      }
  }

  /// One row of a result, whose elements lie side by side.
  void row(const std::byte* x, std::int64_t x_stride, const std::byte* y, const Matrices& right, std::byte* z,
           std::int64_t columns, bool add) const {
    auto* elements = reinterpret_cast<Element*>(z);
    if (!add) std::fill_n(elements, columns, Element{});
    for (std::int64_t l = 0; l < right.count[1]; ++l, x += x_stride, y += right.stride[1]) {
      const Element factor = alpha_ * *reinterpret_cast<const Element*>(x);
      const auto* others = reinterpret_cast<const Element*>(y);
      for (std::int64_t j = 0; j < columns; ++j) elements[j] += factor * others[j];
    }
  }

  void numbers_of_row(const std::byte* x_first, std::int64_t x_stride, const std::byte* y_first,
                      const Matrices& right, std::byte* z, const Matrices& out, bool add) const {
    for (std::int64_t j = 0; j < out.count[2]; ++j) {
      const std::byte *x = x_first, *y = y_first + j * right.stride[2];
      Element sum{};
      for (std::int64_t l = 0; l < right.count[1]; ++l, x += x_stride, y += right.stride[1])
        sum += *reinterpret_cast<const Element*>(x) * *reinterpret_cast<const Element*>(y);
      auto& element = *reinterpret_cast<Element*>(z + j * out.stride[2]);
      element = add ? element + alpha_ * sum : alpha_ * sum;
    }
  }

  void call(const Matrices& left, const Matrices& right, const Matrices& out, bool add) const {
    const auto c = leading(out, size);
    if (c && c->turned) return call(turned(right), turned(left), turned(out), add);
    const auto a = leading(left, size), b = leading(right, size);
    const std::int64_t m = out.count[1], n = out.count[2], k = left.count[2];
    if (!a || !b || !c)
      throw Error(EINVAL, {.attempted = "multiply matrices", .detail = "their elements lie apart"});
    if (std::max({m, n, a->elements, b->elements, c->elements}) > most)
      throw Error(EOVERFLOW,
                  {.attempted = "multiply matrices", .detail = "a side has 2^31 elements or more"});
    const std::int64_t longest = most / 2;
    for (std::int64_t first = 0; first < k; first += longest) {
      const Element keep = add || first > 0 ? Element{1} : Element{};
      blas_.product<Element>(m, n, std::min(longest, k - first), alpha_,
                             {&at(left, 0, first), a->elements, a->turned},
                             {&at(right, first, 0), b->elements, b->turned}, keep,
                             reinterpret_cast<Element*>(out.data), c->elements);
    }
  }

  static Matrices turned(const Matrices& matrix) {
    Matrices result = matrix;
    std::swap(result.count[1], result.count[2]);
    std::swap(result.stride[1], result.stride[2]);
    return result;
  }

  Blas blas_;
  Element alpha_;
};

}  // namespace

Multiply multiply_by(const Blas& blas, ElementType type, const void* alpha) {
  return visit(type, [&](auto zero) -> Multiply {
    using Element = decltype(zero);
    if constexpr (std::is_integral_v<Element>) {
      assert(false);
      return {};
    } else {
      return Product<Element>(blas, alpha);
    }
  });
}

}  // namespace outcore::tensor
