// The expression of a contraction: subscripts as in numpy.einsum.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "outcore/box.hpp"

namespace outcore::tensor {

/// One letter for each axis of each input and of the output; extents by letter.
struct Expression {
  std::vector<std::string> inputs;
  std::string output;
  std::map<char, std::int64_t> extents;

  /// "ik,kj->ij", blanks anywhere; without an arrow the output has the letters that occur once, in the order
  /// of their numbers. Throws Error(EINVAL), which names what does not fit the shapes.
  [[nodiscard]] static Expression parse(std::string_view subscripts, const std::vector<Extents>& shapes);

  [[nodiscard]] std::string text() const;
  [[nodiscard]] Extents shape(std::string_view letters) const;
  /// Error(EOVERFLOW) if there are more than `max_elements`.
  [[nodiscard]] std::int64_t elements(std::string_view letters) const;
  static constexpr std::int64_t max_elements = std::int64_t{1} << 58;  // so that their bytes fit 64 bits
};

/// A product of two arrays: out[batch, rows, columns] += left[batch, rows, inner] right[batch, inner,
/// columns].
struct Binary {
  std::array<std::string, 3> arrays;  ///< letters of left, right and out
  std::array<std::string, 4> groups;  ///< letters of batch, rows, columns and inner indices

  /// The letters of a group have their order in the largest array that has the group. Every letter that only
  /// one operand has is in `out`.
  [[nodiscard]] static Binary of(const Expression& expression, const std::string& left,
                                 const std::string& right, const std::string& out);
};

[[nodiscard]] inline bool has(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

}  // namespace outcore::tensor
