// Types of array elements, named as NumPy names them.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "outcore/api.h"

namespace outcore {

/// The type of an array's elements. Files store these numbers; they never change.
enum class ElementType : std::uint8_t {
  int8 = 1,
  int16 = 2,
  int32 = 3,
  int64 = 4,
  uint8 = 5,
  float32 = 6,
  float64 = 7,
  complex64 = 8,
  complex128 = 9
};

[[nodiscard]] OUTCORE_API std::size_t size_bytes(ElementType type);
[[nodiscard]] OUTCORE_API std::string_view name(ElementType type);
/// Throws Error(EINVAL) for a name that is none of the above.
[[nodiscard]] OUTCORE_API ElementType element_type(std::string_view name);

/// A C++ type that elements of arrays can have: float, double, complex numbers of these, signed integers of 1
/// to 8 bytes, and unsigned ones of 1 byte; not `char`, `bool` or `std::byte`.
template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::complex<float>> ||
                  std::same_as<T, std::complex<double>> || std::same_as<T, std::uint8_t> ||
                  (std::signed_integral<T> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
                   sizeof(T) <= sizeof(std::int64_t));

/// The ElementType that corresponds to a C++ type.
template <Element T>
inline constexpr ElementType element_type_of = [] {
  if (std::same_as<T, float>) return ElementType::float32;
  if (std::same_as<T, double>) return ElementType::float64;
  if (std::same_as<T, std::complex<float>>) return ElementType::complex64;
  if (std::same_as<T, std::complex<double>>) return ElementType::complex128;
  if (std::same_as<T, std::uint8_t>) return ElementType::uint8;
  if (sizeof(T) == 1) return ElementType::int8;
  if (sizeof(T) == 2) return ElementType::int16;
  return sizeof(T) == 4 ? ElementType::int32 : ElementType::int64;
}();

/// Calls `function` with a value-initialised element of the type and returns what it returns.
template <class Function>
decltype(auto) visit(ElementType type, Function&& function) {
  switch (type) {
    case ElementType::int8:
      return function(std::int8_t{});
    case ElementType::int16:
      return function(std::int16_t{});
    case ElementType::int32:
      return function(std::int32_t{});
    case ElementType::int64:
      return function(std::int64_t{});
    case ElementType::uint8:
      return function(std::uint8_t{});
    case ElementType::float32:
      return function(float{});
    case ElementType::float64:
      return function(double{});
    case ElementType::complex64:
      return function(std::complex<float>{});
    case ElementType::complex128:
      break;
  }
  return function(std::complex<double>{});
}

}  // namespace outcore
