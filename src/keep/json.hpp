// JSON in files that others may have written: it is read strictly, so that damage is found.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outcore::keep {

/// Says what is wrong, and where.
struct JsonError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Json {
  enum class Kind : std::uint8_t { other, integer, string, list, object };  ///< other: null, true, 1.5, NaN
  Kind kind = Kind::other;
  std::string_view text = {};  ///< as it was written; in the text that was given to `parse`
  std::int64_t integer = 0;
  std::string string = {};  ///< UTF-8
  std::vector<Json> list = {};
  std::vector<std::pair<std::string, Json>> object = {};  ///< in their order

  /// The member of that name. Throws JsonError if there is none.
  [[nodiscard]] const Json& at(std::string_view name) const;
  [[nodiscard]] const Json* find(std::string_view name) const noexcept;
};

/// Whole numbers of more than 63 bits are `other`. Throws JsonError.
[[nodiscard]] Json parse(std::string_view text);

/// The text if the JSON is a string, else the JSON itself. Throws JsonError.
[[nodiscard]] std::string text_of(const std::string& json);

/// A text with quotation marks. Throws JsonError if it is not UTF-8.
[[nodiscard]] std::string quoted(std::string_view text);

}  // namespace outcore::keep
