// Tiles of tensors, permuted, added and packed, against loops over all elements.
#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "support/check.hpp"
#include "tensor/tile_kernels.hpp"
#include "tensor/tiles.hpp"

using namespace outcore;

namespace {

template <class Element>
struct Type;
template <>
struct Type<float> {
  static constexpr ElementType value = ElementType::float32;
  static constexpr double error = 1e-6;
};
template <>
struct Type<double> {
  static constexpr ElementType value = ElementType::float64;
  static constexpr double error = 1e-15;
};
template <>
struct Type<std::complex<float>> : Type<float> {
  static constexpr ElementType value = ElementType::complex64;
};
template <>
struct Type<std::complex<double>> : Type<double> {
  static constexpr ElementType value = ElementType::complex128;
};

template <class Element>
std::vector<Element> numbers(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<Element> values(static_cast<std::size_t>(count));
  for (Element& each : values) {
    if constexpr (sizeof(Element) == 2 * sizeof(std::abs(Element{})))
      each = Element(static_cast<decltype(std::abs(each))>(uniform(random)),
                     static_cast<decltype(std::abs(each))>(uniform(random)));
    else
      each = static_cast<Element>(uniform(random));
  }
  return values;
}

template <class Element>
void near(Element actual, Element expected) {
  const double difference = std::abs(std::complex<double>(actual) - std::complex<double>(expected));
  check::is_true(difference <= 4 * Type<Element>::error, "another number");
}

template <class Element>
void check_permutation(const Extents& shape, const std::vector<int>& order, Element alpha, bool accumulate) {
  const auto size = static_cast<std::int64_t>(sizeof(Element));
  const Extents from_strides = row_major(shape, sizeof(Element));
  const Extents count = permuted(shape, order), strides = permuted(from_strides, order);
  const Extents to_strides = row_major(count, sizeof(Element));
  const auto from = numbers<Element>(shape.product(), 1), before = numbers<Element>(shape.product(), 2);
  auto to = before;
  tensor::permute(reinterpret_cast<std::byte*>(to.data()), to_strides,
                  reinterpret_cast<const std::byte*>(from.data()), strides, count, Type<Element>::value,
                  &alpha, accumulate);
  for (std::int64_t at = 0; at < shape.product(); ++at) {
    std::int64_t left = at, source = 0;
    for (int i = count.rank() - 1; i >= 0; --i) {
      source += left % count[i] * strides[i];
      left /= count[i];
    }
    const Element value = alpha * from[static_cast<std::size_t>(source / size)];
    const auto here = static_cast<std::size_t>(at);
    near(to[here], accumulate ? before[here] + value : value);
  }
}

template <class Element>
void check_permutations(Element alpha) {
  for (const bool accumulate : {false, true})
    for (const Element factor : {Element{1}, alpha}) {
      check_permutation<Element>({7}, {0}, factor, accumulate);
      check_permutation<Element>({1, 1}, {1, 0}, factor, accumulate);
      check_permutation<Element>({150, 37}, {1, 0}, factor, accumulate);
      check_permutation<Element>({64, 128}, {1, 0}, factor, accumulate);
      std::vector<int> order{0, 1, 2, 3};
      do check_permutation<Element>({5, 3, 18, 6}, order, factor, accumulate);
      while (std::next_permutation(order.begin(), order.end()));
      check_permutation<Element>({2, 3, 2, 1, 3, 2, 2, 3}, {7, 3, 0, 5, 1, 6, 2, 4}, factor, accumulate);
    }
}

template <class Element>
void check_pairs(std::int64_t n, double diagonal) {
  using Real = decltype(std::abs(Element{}));
  const std::int64_t rows = 3;
  const auto x = numbers<Element>(rows * n * n, 3);
  std::vector<Element> plus(static_cast<std::size_t>(rows * n * (n + 1) / 2)),
      minus(static_cast<std::size_t>(rows * n * (n - 1) / 2)), back(x.size());
  const auto bytes = [](auto& values) { return reinterpret_cast<std::byte*>(values.data()); };
  tensor::pack_pairs(reinterpret_cast<const std::byte*>(x.data()), bytes(plus), bytes(minus), rows, n,
                     Type<Element>::value, diagonal);
  auto p = plus.begin(), m = minus.begin();
  for (std::int64_t row = 0; row < rows; ++row) {
    const Element* matrix = x.data() + row * n * n;
    for (std::int64_t c = 0; c < n; ++c)
      for (std::int64_t d = 0; d <= c; ++d) {
        const Element sum = matrix[c * n + d] + matrix[d * n + c];
        near(*p++, c == d ? static_cast<Real>(diagonal) * sum : sum);
        if (c > d) near(*m++, matrix[c * n + d] - matrix[d * n + c]);
      }
  }
  tensor::unpack_pairs(bytes(back), bytes(plus), bytes(minus), rows, n, Type<Element>::value, 0.5 / diagonal);
  for (std::size_t i = 0; i < x.size(); ++i) near(back[i], x[i]);
}

}  // namespace

TEST("every permutation of tiles of every type, scaled and added") {
  check_permutations<float>(-0.75F);
  check_permutations<double>(1.25);
  check_permutations<std::complex<float>>({0.5F, -1.25F});
  check_permutations<std::complex<double>>({-0.25, 0.75});
}

TEST("what is not a number where the target was does not matter if nothing is added to it") {
  std::vector<double> to(6, std::nan("")), from(6, 2.0);
  const double half = 0.5;
  tensor::permute(reinterpret_cast<std::byte*>(to.data()), {16, 8},
                  reinterpret_cast<const std::byte*>(from.data()), {8, 24}, {3, 2}, ElementType::float64,
                  &half, false);
  for (const double each : to) check::equal(each, 1.0);
}

TEST("a real factor leaves infinite parts of complex numbers apart") {
  const std::complex<double> infinite(INFINITY, 1.0), two(2.0);
  std::complex<double> to;
  tensor::permute(reinterpret_cast<std::byte*>(&to), {16}, reinterpret_cast<const std::byte*>(&infinite),
                  {16}, {1}, ElementType::complex128, &two, false);
  check::equal(to, std::complex<double>(INFINITY, 2.0));
}

TEST("pairs are packed and unpacked") {
  for (const std::int64_t n : {1, 2, 5, 16, 17, 40})
    for (const double diagonal : {0.5, 1.0}) {
      check_pairs<float>(n, diagonal);
      check_pairs<double>(n, diagonal);
      check_pairs<std::complex<float>>(n, diagonal);
      check_pairs<std::complex<double>>(n, diagonal);
    }
}

TEST("all instruction sets agree") {
  const auto in = numbers<double>(102, 4), before = numbers<double>(102, 5);
  const double alpha[2] = {0.3, -0.7};
  const auto results = [&](const tensor::RowKernels<double>& rows) {
    std::vector<std::vector<double>> all(6, before);
    rows.scale(all[0].data(), in.data(), alpha[0], 101);
    rows.add(all[1].data(), in.data(), alpha[0], 101);
    rows.scale_complex(all[2].data(), in.data(), alpha, 100);
    rows.add_complex(all[3].data(), in.data(), alpha, 100);
    rows.sum_difference(all[4].data(), all[5].data(), in.data(), before.data(), 0.5, 101);
    return all;
  };
  const auto expected = results(tensor::tile_kernels_any.of_double);
  for (const auto& variant : tensor::tile_kernels_variants) {
    if (!runs(variant.set)) continue;
    const auto found = results(variant.table.of_double);
    for (std::size_t k = 0; k < found.size(); ++k)
      for (std::size_t i = 0; i < found[k].size(); ++i) near(found[k][i], expected[k][i]);
  }
}

TEST_MAIN
