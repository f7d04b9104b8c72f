// Arrays of one dimension between Python and C++.
#pragma once

#include <nanobind/ndarray.h>

#include <algorithm>
#include <memory>
#include <ranges>

namespace outcore::python {

template <class Element>
using Line = nanobind::ndarray<Element, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

/// A new array of NumPy with these elements.
template <std::ranges::contiguous_range Elements>
auto new_line(const Elements& from) {
  using Element = std::ranges::range_value_t<Elements>;
  auto data = std::make_unique<Element[]>(std::ranges::size(from));
  std::ranges::copy(from, data.get());
  nanobind::capsule owner(data.get(), [](void* p) noexcept { delete[] static_cast<Element*>(p); });
  return nanobind::ndarray<Element, nanobind::numpy, nanobind::ndim<1>>(data.release(),
                                                                        {std::ranges::size(from)}, owner);
}

}  // namespace outcore::python
