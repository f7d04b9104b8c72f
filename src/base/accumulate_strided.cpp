#include "base/accumulate_strided.hpp"

#include <cassert>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "outcore/error.hpp"

namespace outcore {
namespace {

template <class Element>
void add_row(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
             std::int64_t count, Element alpha) {
  for (std::int64_t i = 0; i < count; ++i) {
    Element target, source;
    std::memcpy(&target, to + i * to_stride, sizeof target);
    std::memcpy(&source, from + i * from_stride, sizeof source);
    target += alpha * source;
    std::memcpy(to + i * to_stride, &target, sizeof target);
  }
}

template <class Element>
void add(std::byte* to, const Extents& to_stride, const std::byte* from, const Extents& from_stride,
         const Extents& count, Element alpha, int axis) {
  constexpr std::int64_t size = sizeof(Element);
  if (axis < count.rank() - 1) {
    for (std::int64_t i = 0; i < count[axis]; ++i)
      add(to + i * to_stride[axis], to_stride, from + i * from_stride[axis], from_stride, count, alpha,
          axis + 1);
  } else if (to_stride[axis] == size && from_stride[axis] == size) {
    add_row(to, size, from, size, count[axis], alpha);  // a loop that the compiler vectorises
  } else {
    add_row(to, to_stride[axis], from, from_stride[axis], count[axis], alpha);
  }
}

}  // namespace

void accumulate_strided(std::byte* to, const Extents& to_stride_bytes, const std::byte* from,
                        const Extents& from_stride_bytes, const Extents& count, ElementType type,
                        const void* alpha) {
  assert(size_bytes(type) >= 4 && count.rank() > 0);
  visit(type, [&](auto zero) {
    using Element = decltype(zero);
    if constexpr (sizeof(Element) >= 4) {
      Element factor;
      std::memcpy(&factor, alpha, sizeof factor);
      add(to, to_stride_bytes, from, from_stride_bytes, count, factor, 0);
    }
  });
}

void check_accumulated(ElementType type, const std::string& what) {
  if (size_bytes(type) < 4)
    throw Error(EINVAL, {.attempted = "accumulate into a " + what,
                         .detail = "types of at least 4 bytes can be accumulated"});
}

const void* one_of(ElementType type) noexcept {
  return visit(type, [](auto zero) -> const void* {
    using Element = decltype(zero);
    static const Element one{1};
    return &one;
  });
}

}  // namespace outcore
