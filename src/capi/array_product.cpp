#include "capi/array_product.hpp"

#include <dlfcn.h>

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

namespace outcore::capi {
namespace {

constexpr const char* attempted = "product of global arrays";
constexpr std::int64_t tile = 384;  // rows and columns of the blocks that are multiplied at a time

template <class Element>
concept Factors = !std::integral<Element>;

/// xGEMM of Fortran; last the lengths of its texts, which compilers pass by value. Integers of eight bytes
/// are also right where it takes four, of small numbers in the order of bytes that machines have.
template <class Element>
using Gemm = void (*)(const char*, const char*, const std::int64_t*, const std::int64_t*, const std::int64_t*,
                      const Element*, const Element*, const std::int64_t*, const Element*,
                      const std::int64_t*, const Element*, Element*, const std::int64_t*, std::size_t,
                      std::size_t);

/// That of the program, or null.
template <class Element>
Gemm<Element> gemm_of_program() {
  constexpr const char* name = std::same_as<Element, float>                 ? "sgemm_"
                               : std::same_as<Element, double>              ? "dgemm_"
                               : std::same_as<Element, std::complex<float>> ? "cgemm_"
                                                                            : "zgemm_";
  return reinterpret_cast<Gemm<Element>>(dlsym(RTLD_DEFAULT, name));
}

/// c[m][n] += a[m][k] b[k][n], all contiguous.
template <class Element>
void add_product(std::int64_t m, std::int64_t n, std::int64_t k, const Element* a, const Element* b,
                 Element* c) {
  static const Gemm<Element> gemm = gemm_of_program<Element>();
  if (gemm) {  // by rows is by columns of the transposed
    const Element one = 1;
    gemm("N", "N", &n, &m, &k, &one, b, &n, a, &k, &one, c, &n, 1, 1);
    return;
  }
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t l = 0; l < k; ++l) {
      const Element factor = a[i * k + l];
      for (std::int64_t j = 0; j < n; ++j) c[i * n + j] += factor * b[l * n + j];
    }
}

/// Extents of op(factor).
std::array<std::int64_t, 2> extents(const Factor& factor) {
  const Extents& shape = factor.array.shape();
  if (factor.trans == 'N') return {shape[0], shape[1]};
  return {shape[1], shape[0]};
}

std::string text_of(const Factor& factor) {
  return factor.array.shape().text() + static_cast<char>(factor.trans);
}

void check(const Factor& a, const Factor& b, const GlobalArray& c) {
  const auto refuse = [](const std::string& why) {
    throw Error(EINVAL, {.attempted = attempted, .detail = why});
  };
  for (const Factor* each : {&a, &b}) {
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
void get(const Factor& factor, std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns,
         std::vector<Element>& memory) {
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

/// The tiles of an own part of c, whose first element is at `memory`.
template <class Element>
void multiply_part(const Factor& a, const Factor& b, Element alpha, Element beta, const Box& part,
                   const Strided& memory) {
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
        add_product(m, n, k, x.data(), y.data(), sum.data());
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

/// Equal at processes that ask for the same.
std::uint64_t number_of(const Factor& a, const Factor& b, const void* alpha, const void* beta,
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

void multiply(const Factor& a, const Factor& b, const void* alpha, const void* beta, GlobalArray& c) {
  World& world = c.world();
  world.barrier();  // what others have put is there
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
