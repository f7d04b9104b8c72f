#include "outcore/element_type.hpp"

#include <array>
#include <cerrno>
#include <string>

#include "outcore/error.hpp"

namespace outcore {
namespace {

constexpr std::array<std::pair<ElementType, std::string_view>, 9> names{
    {{ElementType::int8, "int8"},
     {ElementType::int16, "int16"},
     {ElementType::int32, "int32"},
     {ElementType::int64, "int64"},
     {ElementType::uint8, "uint8"},
     {ElementType::float32, "float32"},
     {ElementType::float64, "float64"},
     {ElementType::complex64, "complex64"},
     {ElementType::complex128, "complex128"}}};

}  // namespace

std::size_t size_bytes(ElementType type) {
  return visit(type, [](auto element) { return sizeof(element); });
}

std::string_view name(ElementType type) {
  for (const auto& [each, text] : names)
    if (each == type) return text;
  return "unknown";
}

ElementType element_type(std::string_view text) {
  std::string known;
  for (const auto& [type, each] : names) {
    if (each == text) return type;
    known += (known.empty() ? "" : ", ") + std::string(each);
  }
  throw Error(EINVAL, {.attempted = "array of " + std::string(text), .detail = "element types are " + known});
}

}  // namespace outcore
