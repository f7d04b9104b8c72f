// Memory of the caller, with its type: spans, vectors, C arrays and mdspans, as arrays and files take them.
#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

#include "outcore/api.h"
#include "outcore/box.hpp"
#include "outcore/element_type.hpp"

namespace outcore {

/// std::span, std::vector, std::array, a C array, and other ranges of contiguous elements.
template <class Range>
concept ContiguousMemory = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range>;

/// A temporary range that owns its memory. Calls that return before they have used the memory do not accept
/// it.
template <class Range>
concept Temporary = ContiguousMemory<Range> && !std::ranges::borrowed_range<Range>;

/// A type with the members of std::mdspan and elements in plain memory: std::mdspan of C++23, the reference
/// implementation for C++20 (Kokkos::mdspan), submdspans of them. Not those whose accessors compute, as of
/// scaled and conjugated mdspans of std::linalg.
template <class Span>
concept Multidimensional = requires(const Span& span, std::size_t axis) {
  requires std::same_as<typename Span::data_handle_type, typename Span::element_type*>;
  requires std::same_as<typename Span::reference, typename Span::element_type&>;
  requires Span::rank() > 0 && Span::rank() <= max_rank;
  { span.data_handle() } -> std::convertible_to<typename Span::element_type*>;
  { span.accessor().access(span.data_handle(), axis) } -> std::same_as<typename Span::element_type&>;
  { span.mapping().required_span_size() } -> std::convertible_to<std::int64_t>;
  { span.extent(axis) } -> std::convertible_to<std::int64_t>;
  { span.mapping().stride(axis) } -> std::convertible_to<std::int64_t>;
  { span.is_unique() } -> std::convertible_to<bool>;
  { span.is_exhaustive() } -> std::convertible_to<bool>;
  { span.is_strided() } -> std::convertible_to<bool>;
};

/// Whether the accessor finds the last element where plain arithmetic on the pointer to the first one does.
template <Multidimensional Span>
[[nodiscard]] bool in_place(const Span& span) {
  const auto size = static_cast<std::int64_t>(span.mapping().required_span_size());
  if (size < 2) return true;
  const auto last = static_cast<std::size_t>(size - 1);
  return &span.accessor().access(span.data_handle(), last) == span.data_handle() + last;
}

/// A pointer to elements that can be changed.
template <class Pointer>
concept Writable = !std::is_const_v<std::remove_pointer_t<Pointer>>;

template <class Range>
using PointerOf = decltype(std::ranges::data(std::declval<Range&>()));  ///< to elements of a range

/// Elements of the caller's memory that an array reads: made from a contiguous range, which has all elements
/// of a box one after the other (C order), or from an mdspan of the shape of the box, with any strides. The
/// memory stays the caller's, and must last until the transfer is done.
///
/// Memory that cannot be moved is an error of the transfer, not of this constructor, so that a collective
/// transfer fails at all processes.
class OUTCORE_API ConstElements {
 public:
  template <ContiguousMemory Range>
    requires Element<std::ranges::range_value_t<Range>>
  ConstElements(Range&& range) noexcept
      : ConstElements(std::ranges::data(range), static_cast<std::int64_t>(std::ranges::size(range)), true) {}
  template <Multidimensional Span>
    requires Element<std::remove_cv_t<typename Span::element_type>>
  ConstElements(const Span& span) : ConstElements(span.data_handle(), 0, false) {
    strided_ = span.is_strided();
    in_place_ = in_place(span);
    shape_ = stride_bytes_ = Extents::filled(static_cast<int>(Span::rank()), 0);
    for (std::size_t axis = 0; axis < Span::rank(); ++axis) {
      shape_[static_cast<int>(axis)] = static_cast<std::int64_t>(span.extent(axis));
      if (strided_)
        stride_bytes_[static_cast<int>(axis)] = static_cast<std::int64_t>(span.mapping().stride(axis)) *
                                                std::int64_t(sizeof(*span.data_handle()));
    }
  }

  [[nodiscard]] ElementType type() const noexcept { return type_; }
  /// The shape of an mdspan; the number of elements of a range.
  [[nodiscard]] const Extents& shape() const noexcept { return shape_; }
  /// The memory as bytes, for a box of this shape of an array of this type. Throws Error(EINVAL) if type or
  /// shape differ (the message names both), or for a layout without strides. `what` names the array in the
  /// message: "disk array".
  [[nodiscard]] Strided strided(const Extents& shape, ElementType type, const char* what) const;
  /// The first byte of the memory, for transfers that need elements in C order without gaps: other strides
  /// are Error(EINVAL), too.
  [[nodiscard]] std::byte* contiguous(const Extents& shape, ElementType type, const char* what) const;

 protected:
  template <class Pointer>
  ConstElements(Pointer first, std::int64_t count, bool ordered) noexcept
      : data_(reinterpret_cast<std::byte*>(
            const_cast<std::remove_cv_t<std::remove_pointer_t<Pointer>>*>(first))),
        type_(element_type_of<std::remove_cv_t<std::remove_pointer_t<Pointer>>>),
        shape_{count},
        ordered_(ordered) {}

  std::byte* data_;
  ElementType type_;
  Extents shape_, stride_bytes_;
  bool ordered_;  ///< made from a range, which fits any shape of the box
  bool strided_ = true, in_place_ = true, unique_ = true, written_ = false;
};

/// Elements of the caller's memory that an array writes to. They must not be const, and a layout in which two
/// elements share memory is an error.
class OUTCORE_API Elements : public ConstElements {
 public:
  template <ContiguousMemory Range>
    requires Element<std::ranges::range_value_t<Range>> && (!Temporary<Range>) && Writable<PointerOf<Range>>
  Elements(Range&& range) noexcept : ConstElements(range) {
    written_ = true;
  }
  template <Multidimensional Span>
    requires Element<typename Span::element_type>
  Elements(const Span& span) : ConstElements(span) {
    written_ = true;
  }
};

/// A factor for the elements of a transfer. It may have any type of elements, but the type of the array must
/// be able to represent its value: 2 fits all arrays, 0.5 no array of integers, an imaginary number no array
/// of reals.
class OUTCORE_API Factor {
 public:
  template <Element Number>
  Factor(Number value) noexcept {
    if constexpr (std::integral<Number>)
      integer_ = value;
    else
      number_ = value;
    is_integer_ = std::integral<Number>;
  }

  struct alignas(16) Value {
    std::array<std::byte, 16> bytes;
  };
  /// The value as one element of a type; real numbers are rounded. Throws Error(EINVAL), which names value
  /// and type, if the type cannot represent it.
  [[nodiscard]] Value as(ElementType type) const;

 private:
  std::int64_t integer_ = 0;
  std::complex<double> number_;
  bool is_integer_;
};

/// Throws Error(EINVAL) if the types differ; the message names both, and the array by `what`: "node array".
OUTCORE_API void check_elements(ElementType wanted, ElementType type, const char* what);

/// The elements of row-major memory of an array, in place. Throws as check_elements.
template <Element T>
[[nodiscard]] std::span<T> elements_in_place(std::byte* first, const Extents& shape, ElementType type,
                                             const char* what) {
  check_elements(element_type_of<T>, type, what);
  return {reinterpret_cast<T*>(first), static_cast<std::size_t>(shape.product())};
}

/// A type that files read and write as bytes.
template <class T>
concept Plain = std::is_trivially_copyable_v<T>;

/// Bytes of the caller's memory that a file reads into, in the order of the memory: those of a contiguous
/// range of anything plain, or of an mdspan without gaps (one with gaps is Error(EINVAL)). A file stores no
/// types: the caller must know the type of what it reads.
class OUTCORE_API PlainMemory : public std::span<std::byte> {
 public:
  PlainMemory() = default;
  template <ContiguousMemory Range>
    requires Plain<std::ranges::range_value_t<Range>> && (!Temporary<Range>) && Writable<PointerOf<Range>>
  PlainMemory(Range&& range) noexcept
      : span(std::as_writable_bytes(std::span(std::ranges::data(range), std::ranges::size(range)))) {}
  template <Multidimensional Span>
    requires Plain<typename Span::element_type> && Writable<typename Span::data_handle_type>
  PlainMemory(const Span& memory)
      : span(std::as_writable_bytes(std::span(memory.data_handle(), count_without_gaps(memory)))) {}

  /// How many elements there are. Throws Error(EINVAL) if they do not lie one after the other.
  template <Multidimensional Span>
  [[nodiscard]] static std::size_t count_without_gaps(const Span& memory) {
    std::size_t count = 1;
    for (std::size_t axis = 0; axis < Span::rank(); ++axis)
      count *= static_cast<std::size_t>(memory.extent(axis));
    if (count > 0 && !(memory.is_exhaustive() && memory.is_unique() && in_place(memory))) refuse_gaps();
    return count;
  }

 private:
  [[noreturn]] static void refuse_gaps();
};

/// Bytes of the caller's memory that a file writes, in the order of the memory.
class OUTCORE_API ConstPlainMemory : public std::span<const std::byte> {
 public:
  ConstPlainMemory() = default;
  template <ContiguousMemory Range>
    requires Plain<std::ranges::range_value_t<Range>>
  ConstPlainMemory(Range&& range) noexcept
      : span(std::as_bytes(std::span(std::ranges::data(range), std::ranges::size(range)))) {}
  template <Multidimensional Span>
    requires Plain<std::remove_cv_t<typename Span::element_type>>
  ConstPlainMemory(const Span& memory)
      : span(std::as_bytes(std::span(memory.data_handle(), PlainMemory::count_without_gaps(memory)))) {}
};

}  // namespace outcore

template <>
inline constexpr bool std::ranges::enable_borrowed_range<outcore::PlainMemory> = true;
template <>
inline constexpr bool std::ranges::enable_borrowed_range<outcore::ConstPlainMemory> = true;
