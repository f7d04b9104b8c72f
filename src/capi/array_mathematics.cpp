#include "capi/array_mathematics.hpp"

#include <cerrno>
#include <complex>
#include <concepts>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"

namespace outcore::capi {
namespace {

constexpr std::int64_t usual_portion = 1 << 17;  // elements that are copied at a time, by dot

std::uint64_t number_of_both(const GlobalArray& a, const GlobalArray& b) {
  const std::uint64_t numbers[] = {a.number(), b.number()};
  return fingerprint(std::as_bytes(std::span(numbers)));
}

void check_alike(const GlobalArray& a, const GlobalArray& b, const char* attempted) {
  if (&a.world() != &b.world())
    throw Error(EINVAL, {.attempted = attempted, .detail = "the arrays are of different worlds"});
  if (a.type() != b.type() || a.shape() != b.shape())
    throw Error(EINVAL, {.attempted = attempted,
                         .detail = "one array is " + std::string(name(a.type())) + a.shape().text() +
                                   ", the other " + std::string(name(b.type())) + b.shape().text()});
}

/// Calls `visit(box, element)` for all boxes that this process holds of an array.
template <class Visit>
void for_each_own(const GlobalArray& array, Visit visit) {
  array.distribution().for_each_part_of(
      array.world().rank(), Box::whole(array.shape()),
      [&](int, const Box& part, std::int64_t element) { visit(part, element); });
}

Strided at(const Strided& memory, std::int64_t element, std::size_t element_bytes) {
  return {memory.data + element * static_cast<std::int64_t>(element_bytes), memory.stride_bytes};
}

/// Halves of a box until they have few elements, so that a buffer for them is small.
template <class Visit>
void in_portions(const Box& box, Visit& visit) {
  if (box.volume() <= usual_portion) return box.empty() ? void() : visit(box);
  int longest = 0;
  const Extents shape = box.shape();
  for (int k = 1; k < shape.rank(); ++k)
    if (shape[k] > shape[longest]) longest = k;
  Box first = box, second = box;
  first.end[longest] = second.begin[longest] = box.begin[longest] + shape[longest] / 2;
  in_portions(first, visit);
  in_portions(second, visit);
}

/// This process's part of a sum of products. Partial sums have the element's type, but float is summed as
/// double.
template <class Element>
auto own_dot(const GlobalArray& a, const GlobalArray& b) {
  using Sum = std::conditional_t<
      std::same_as<Element, float>, double,
      std::conditional_t<std::same_as<Element, std::complex<float>>, std::complex<double>, Element>>;
  Sum sum{};
  std::vector<Element> x, y;
  auto portion = [&](const Box& box) {
    const auto count = static_cast<std::size_t>(box.volume());
    x.resize(count);
    y.resize(count);
    const Extents strides = row_major(box.shape(), sizeof(Element));
    a.get(box, {reinterpret_cast<std::byte*>(x.data()), strides});
    b.get(box, {reinterpret_cast<std::byte*>(y.data()), strides});
    for (std::size_t i = 0; i < count; ++i)
      if constexpr (std::same_as<Element, std::int64_t>)  // wraps around
        sum = static_cast<Sum>(static_cast<std::uint64_t>(sum) +
                               static_cast<std::uint64_t>(x[i]) * static_cast<std::uint64_t>(y[i]));
      else
        sum += static_cast<Sum>(x[i]) * static_cast<Sum>(y[i]);
  };
  for_each_own(a, [&](const Box& part, std::int64_t) { in_portions(part, portion); });
  return sum;
}

template <class Sum>
Sum sum_of_all(World& world, Sum sum) {
  if constexpr (std::same_as<Sum, std::complex<double>>) {
    double parts[] = {sum.real(), sum.imag()};
    world.transport().all_reduce(std::span<double>(parts), transport::Reduction::sum);
    return {parts[0], parts[1]};
  } else {
    world.transport().all_reduce(std::span<Sum>(&sum, 1), transport::Reduction::sum);
    return sum;
  }
}

template <class Element>
concept Summable = !std::integral<Element> || std::same_as<Element, std::int64_t>;

}  // namespace

void fill(GlobalArray& array, const void* value) {
  array.sync();
  array.world().together("fill global array", array.number(), [&] {
    const Strided local = array.local();
    const std::int64_t count = array.distribution().local_shape(array.world().rank()).product();
    const std::size_t bytes = array.element_bytes();
    if (!value) std::memset(local.data, 0, static_cast<std::size_t>(count) * bytes);
    for (std::int64_t i = 0; value && i < count; ++i)
      std::memcpy(local.data + i * static_cast<std::int64_t>(bytes), value, bytes);
  });
  array.sync();
}

void copy(const GlobalArray& from, GlobalArray& to) {
  to.world().barrier();  // after it the puts of others are visible
  to.world().together("copy global array", number_of_both(from, to), [&] {
    check_alike(from, to, "copy global array");
    const Strided local = to.local();
    for_each_own(to, [&](const Box& part, std::int64_t element) {
      from.get(part, at(local, element, to.element_bytes()));
    });
  });
  to.sync();
}

void dot(const GlobalArray& a, const GlobalArray& b, void* result) {
  World& world = a.world();
  world.barrier();
  visit(a.type(), [&]<class Element>(Element) {
    if constexpr (Summable<Element>) {
      decltype(own_dot<Element>(a, b)) sum{};
      world.together("dot product of global arrays", number_of_both(a, b), [&] {
        check_alike(a, b, "dot product of global arrays");
        if (!result)
          throw Error(EINVAL, {.attempted = "dot product of global arrays", .detail = "result is NULL"});
        sum = own_dot<Element>(a, b);
      });
      const auto total = static_cast<Element>(sum_of_all(world, sum));
      std::memcpy(result, &total, sizeof total);
    } else {
      world.together("dot product of global arrays", number_of_both(a, b), [&] {
        throw Error(EINVAL, {.attempted = "dot product of global arrays",
                             .detail = "of type " + std::string(name(a.type()))});
      });
    }
  });
}

}  // namespace outcore::capi
