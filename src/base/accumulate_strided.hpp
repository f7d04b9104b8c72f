// Adding elements of strided memory, as copy_strided copies them.
#pragma once

#include <cstddef>
#include <string>

#include "outcore/box.hpp"
#include "outcore/element_type.hpp"

namespace outcore {

/// to += alpha * from, element by element. The memory must not overlap, and no other thread may use it.
/// `alpha` points to one element of the type. Elements need not be aligned. Types of 4 bytes and more;
/// asserted.
void accumulate_strided(std::byte* to, const Extents& to_stride_bytes, const std::byte* from,
                        const Extents& from_stride_bytes, const Extents& count, ElementType type,
                        const void* alpha);

/// Throws Error(EINVAL) for a type that cannot be accumulated; `what` is the array, in its message.
void check_accumulated(ElementType type, const std::string& what);
/// The number one as an element of the type.
[[nodiscard]] const void* one_of(ElementType type) noexcept;

}  // namespace outcore
