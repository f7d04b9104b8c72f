#include "capi/array_product.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <complex>
#include <concepts>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "outcore/error.hpp"
#include "tensor/multiply.hpp"
#include "tensor/program_blas.hpp"

namespace outcore::capi {
namespace {

constexpr const char* attempted = "product of global arrays";
constexpr std::int64_t tile = 384;  // rows and columns of the blocks that are multiplied at a time

template <class Element>
concept Factors = !std::integral<Element>;

/// Extents of op(factor).
std::array<std::int64_t, 2> extents(const MatrixFactor& factor) {
  const Extents& shape = factor.array.shape();
  if (factor.trans == 'N') return {shape[0], shape[1]};
  return {shape[1], shape[0]};
}

std::string text_of(const MatrixFactor& factor) {
  return factor.array.shape().text() + static_cast<char>(factor.trans);
}

void check(const MatrixFactor& a, const MatrixFactor& b, const GlobalArray& c) {
  const auto refuse = [](const std::string& why) {
    throw Error(EINVAL, {.attempted = attempted, .detail = why});
  };
  for (const MatrixFactor* each : {&a, &b}) {
    if (each->trans != 'N' && each->trans != 'T' && each->trans != 'C') refuse("a letter is none of N, T, C");
    if (&each->array.world() != &c.world()) refuse("the arrays are of different worlds");
    if (each->array.number() == c.number()) refuse("the result is one of the factors");
    if (each->array.type() != c.type())
      refuse("one array is " + std::string(name(each->array.type())) + ", the result " +
             std::string(name(c.type())));
  }
  visit(c.type(), [&]<class Element>(Element) {
    if constexpr (!Factors<Element>) refuse("of type " + std::string(name(c.type())));
  });
  if (a.array.shape().rank() != 2 || b.array.shape().rank() != 2 || c.shape().rank() != 2)
    refuse("an array is no matrix");
  const auto left = extents(a), right = extents(b);
  if (left[1] != right[0] || c.shape() != Extents{left[0], right[1]})
    refuse(text_of(a) + " times " + text_of(b) + " is not " + c.shape().text());
}

/// Gets rows and columns of op(factor), contiguous.
template <class Element>
void get(const MatrixFactor& factor, std::int64_t row, std::int64_t rows, std::int64_t column,
         std::int64_t columns, std::vector<Element>& memory) {
  memory.resize(static_cast<std::size_t>(rows * columns));
  constexpr auto bytes = static_cast<std::int64_t>(sizeof(Element));
  Box box{{row, column}, {row + rows, column + columns}};
  Extents strides{columns * bytes, bytes};
  if (factor.trans != 'N') {
    std::swap(box.begin[0], box.begin[1]);
    std::swap(box.end[0], box.end[1]);
    std::swap(strides[0], strides[1]);
  }
  factor.array.get(box, {reinterpret_cast<std::byte*>(memory.data()), strides});
  if constexpr (!std::floating_point<Element>)
    if (factor.trans == 'C')
      for (Element& each : memory) each = std::conj(each);
}

template <class Element>
Element value_of(const void* given, Element otherwise) {
  if (given) std::memcpy(&otherwise, given, sizeof otherwise);
  return otherwise;
}

/// The tiles of this process's part of c, whose first element is at `memory`.
template <class Element>
void multiply_part(const MatrixFactor& a, const MatrixFactor& b, Element alpha, Element beta, const Box& part,
                   const Strided& memory) {
  const auto by_rows = [](std::vector<Element>& values, std::int64_t rows, std::int64_t columns) {
    constexpr auto bytes = static_cast<std::int64_t>(sizeof(Element));
    return tensor::Matrices{reinterpret_cast<std::byte*>(values.data()),
                            {1, rows, columns},
                            {rows * columns * bytes, columns * bytes, bytes}};
  };
  const Element one = 1;
  const auto multiply = tensor::multiply_by(tensor::program_blas(), element_type_of<Element>, &one);
  const std::int64_t depth = extents(a)[1];
  std::vector<Element> x, y, sum;
  for (std::int64_t i = part.begin[0]; i < part.end[0]; i += tile)
    for (std::int64_t j = part.begin[1]; j < part.end[1]; j += tile) {
      const std::int64_t m = std::min(tile, part.end[0] - i), n = std::min(tile, part.end[1] - j);
      sum.assign(static_cast<std::size_t>(m * n), Element{});
      for (std::int64_t l = 0; l < depth; l += tile) {
        const std::int64_t k = std::min(tile, depth - l);
        get(a, i, m, l, k, x);
        get(b, l, k, j, n, y);
        multiply(by_rows(x, m, k), by_rows(y, k, n), by_rows(sum, m, n), l > 0);
      }
      for (std::int64_t r = 0; r < m; ++r)
        for (std::int64_t s = 0; s < n; ++s) {
          std::byte* const place = memory.data + (i - part.begin[0] + r) * memory.stride_bytes[0] +
                                   (j - part.begin[1] + s) * memory.stride_bytes[1];
          auto& element = *reinterpret_cast<Element*>(place);
          const Element added = alpha * sum[static_cast<std::size_t>(r * n + s)];
          element = beta == Element{} ? added : beta * element + added;
        }
    }
}

/// A fingerprint of the arguments.
std::uint64_t number_of(const MatrixFactor& a, const MatrixFactor& b, const void* alpha, const void* beta,
                        const GlobalArray& c) {
  std::uint64_t numbers[9] = {a.array.number(), b.array.number(), c.number(),
                              static_cast<std::uint64_t>(a.trans), static_cast<std::uint64_t>(b.trans)};
  visit(c.type(), [&]<class Element>(Element) {
    const Element factors[2] = {value_of<Element>(alpha, 1), value_of<Element>(beta, 0)};
    static_assert(sizeof factors <= 4 * sizeof numbers[0]);
    std::memcpy(numbers + 5, factors, sizeof factors);
  });
  return fingerprint(std::as_bytes(std::span(numbers)));
}

}  // namespace

void multiply(const MatrixFactor& a, const MatrixFactor& b, const void* alpha, const void* beta,
              GlobalArray& c) {
  World& world = c.world();
  world.barrier();  // after it the puts of others are visible
  world.together(attempted, number_of(a, b, alpha, beta, c), [&] {
    check(a, b, c);
    visit(c.type(), [&]<class Element>(Element) {
      if constexpr (Factors<Element>) {
        const Element factor = value_of<Element>(alpha, 1), old = value_of<Element>(beta, 0);
        const Strided local = c.local();
        c.distribution().for_each_part_of(
            world.rank(), Box::whole(c.shape()), [&](int, const Box& part, std::int64_t element) {
              multiply_part(
                  a, b, factor, old, part,
                  {local.data + element * static_cast<std::int64_t>(sizeof(Element)), local.stride_bytes});
            });
      }
    });
  });
  c.sync();
}

}  // namespace outcore::capi
