#include "outcore/memory.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

#include "outcore/error.hpp"

namespace outcore {
namespace {

[[noreturn]] void refuse(const Extents& shape, ElementType type, const char* what, std::string detail) {
  throw Error(EINVAL, {.attempted = "transfer of " + shape.text() + " elements of a " + what + " of " +
                                    std::string(name(type)),
                       .detail = std::move(detail)});
}

/// Whether elements lie in C order without gaps. The stride of an axis of one element says nothing.
bool is_row_major(const Extents& shape, const Extents& stride_bytes, std::size_t element_bytes) {
  const Extents wanted = row_major(shape, element_bytes);
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] > 1 && stride_bytes[axis] != wanted[axis]) return false;
  return true;
}

template <class T>
inline constexpr bool is_complex =
    std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

/// Stores a real number as a type; false if the type cannot represent it, apart from rounding.
template <class T>
bool store(double value, T& element) {
  if constexpr (std::integral<T>) {
    // The limits themselves need not be representable as double, but the numbers one beyond them are.
    const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (!(value >= double(std::numeric_limits<T>::min()) && value < beyond) || value != std::trunc(value))
      return false;
    element = static_cast<T>(value);
  } else {
    element = static_cast<T>(value);
    if (std::isfinite(value) && !std::isfinite(element)) return false;
  }
  return true;
}

}  // namespace

Strided ConstElements::strided(const Extents& shape, ElementType type, const char* what) const {
  if (type_ != type) refuse(shape, type, what, "the memory has elements of " + std::string(name(type_)));
  if (ordered_) {
    if (shape_[0] != shape.product())
      refuse(shape, type, what,
             "the memory has " + std::to_string(shape_[0]) + " elements, the box " +
                 std::to_string(shape.product()));
    return {data_, row_major(shape, size_bytes(type))};
  }
  if (shape_ != shape) refuse(shape, type, what, "the mdspan has the shape " + shape_.text());
  if (!strided_) refuse(shape, type, what, "the layout of the mdspan has no strides");
  if (!in_place_) refuse(shape, type, what, "the accessor of the mdspan has its elements elsewhere");
  bool unique = unique_;
  for (int axis = 0; axis < shape.rank(); ++axis)
    unique = unique && (shape[axis] <= 1 || stride_bytes_[axis] != 0);
  if (written_ && !unique) refuse(shape, type, what, "elements of the mdspan share memory");
  return {data_, stride_bytes_};
}

std::byte* ConstElements::contiguous(const Extents& shape, ElementType type, const char* what) const {
  const Strided memory = strided(shape, type, what);
  if (!is_row_major(shape, memory.stride_bytes, size_bytes(type)))
    refuse(shape, type, what,
           "it takes memory in C order without gaps, and the mdspan has strides of " +
               memory.stride_bytes.text() + " bytes");
  return memory.data;
}

Factor::Value Factor::as(ElementType type) const {
  Value stored{};
  const bool has = visit(type, [&](auto element) {
    using T = decltype(element);
    bool fits;
    if constexpr (is_complex<T>) {
      typename T::value_type real{}, imaginary{};
      fits = store(is_integer_ ? static_cast<double>(integer_) : number_.real(), real) &&
             store(is_integer_ ? 0.0 : number_.imag(), imaginary);
      element = {real, imaginary};
    } else if (is_integer_ && std::integral<T>) {
      fits = std::in_range<std::conditional_t<std::integral<T>, T, int>>(integer_);
      element = static_cast<T>(integer_);
    } else {
      fits = store(is_integer_ ? static_cast<double>(integer_) : number_.real(), element) &&
             (is_integer_ || number_.imag() == 0);
    }
    std::memcpy(stored.bytes.data(), &element, sizeof element);
    return fits;
  });
  if (has) return stored;
  std::ostringstream value;
  value.precision(17);
  if (is_integer_)
    value << integer_;
  else if (number_.imag() == 0)
    value << number_.real();
  else
    value << number_;
  throw Error(EINVAL, {.attempted = "accumulate into an array of " + std::string(name(type)),
                       .detail = "that type does not have the factor " + value.str()});
}

void check_elements(ElementType wanted, ElementType type, const char* what) {
  if (wanted != type)
    throw Error(EINVAL, {.attempted = "use the elements of a " + std::string(what) + " as " +
                                      std::string(name(wanted)),
                         .detail = "they are of type " + std::string(name(type))});
}

void PlainMemory::refuse_gaps() {
  throw Error(EINVAL, {.attempted = "transfer of a file",
                       .detail = "the elements of the mdspan do not lie one after the other"});
}

}  // namespace outcore
