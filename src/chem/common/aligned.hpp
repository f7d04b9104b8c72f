// Vectors that begin at a cache line, so that registers do not straddle two.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace outcore::chem {

template <class Element>
struct LineAllocator {
  using value_type = Element;
  static constexpr std::align_val_t line{64};

  LineAllocator() = default;
  template <class Other>
  LineAllocator(const LineAllocator<Other>&) noexcept {}
  [[nodiscard]] Element* allocate(std::size_t count) {
    return static_cast<Element*>(::operator new(count * sizeof(Element), line));
  }
  void deallocate(Element* at, std::size_t) noexcept { ::operator delete(at, line); }
  friend bool operator==(const LineAllocator&, const LineAllocator&) noexcept { return true; }
};

template <class Element>
using Aligned = std::vector<Element, LineAllocator<Element>>;

}  // namespace outcore::chem
