#include "tensor/expression.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <utility>

#include "outcore/error.hpp"

namespace outcore::tensor {

Expression Expression::parse(std::string_view subscripts, const std::vector<Extents>& shapes) {
  std::string text;
  for (const char each : subscripts)
    if (!std::isspace(static_cast<unsigned char>(each))) text += each;
  const auto refuse = [&](const std::string& why) {
    throw Error(EINVAL, {.attempted = "einsum '" + text + "'", .detail = why});
  };
  const std::size_t arrow = text.find("->");
  Expression result;
  std::string current;
  for (const char each : text.substr(0, arrow) + ",") {
    if (each != ',')
      current += each;
    else
      result.inputs.push_back(std::exchange(current, {}));
  }
  if (result.inputs.size() != shapes.size())
    refuse("subscripts of " + std::to_string(result.inputs.size()) + " operands, " +
           std::to_string(shapes.size()) + " are given");
  const auto check = [&](const std::string& letters) {
    for (const char letter : letters)
      if (!std::isalpha(static_cast<unsigned char>(letter)))
        refuse(std::string("'") + letter + "' is no letter");
  };
  std::map<char, int> counts;
  for (std::size_t number = 0; number < shapes.size(); ++number) {
    const std::string& letters = result.inputs[number];
    const std::string its = "operand " + std::to_string(number);
    check(letters);
    if (std::ssize(letters) != shapes[number].rank())
      refuse(its + " has " + std::to_string(shapes[number].rank()) + " axes, its subscripts '" + letters +
             "'");
    for (int axis = 0; axis < shapes[number].rank(); ++axis) {
      const char letter = letters[static_cast<std::size_t>(axis)];
      ++counts[letter];
      if (letters.find(letter) != static_cast<std::size_t>(axis))
        refuse(std::string("'") + letter + "' is twice in " + its + "; a diagonal is not taken here");
      const auto [known, is_new] = result.extents.emplace(letter, shapes[number][axis]);
      if (!is_new && known->second != shapes[number][axis])
        refuse(std::string("'") + letter + "' has extent " + std::to_string(known->second) + ", and " +
               std::to_string(shapes[number][axis]) + " in " + its + " ('" + letters + "')");
    }
  }
  if (arrow == std::string::npos)
    for (const auto& [letter, count] : counts) result.output += count == 1 ? std::string(1, letter) : "";
  else
    result.output = text.substr(arrow + 2);
  check(result.output);
  for (const char letter : result.output) {
    if (std::ranges::count(result.output, letter) > 1)
      refuse(std::string("'") + letter + "' occurs twice in the output");
    if (!counts.contains(letter)) refuse(std::string("'") + letter + "' of the output is in no operand");
  }
  return result;
}

std::string Expression::text() const {
  std::string result;
  for (const std::string& each : inputs) result += (&each == inputs.data() ? "" : ",") + each;
  return result + "->" + output;
}

Extents Expression::shape(std::string_view letters) const {
  std::vector<std::int64_t> shape;
  for (const char letter : letters) shape.push_back(extents.at(letter));
  return Extents(shape);
}

std::int64_t Expression::elements(std::string_view letters) const {
  std::int64_t product = 1;
  for (const char letter : letters) {
    const std::int64_t extent = extents.at(letter);
    if (extent > 0 && product > max_elements / extent)
      throw Error(EOVERFLOW, {.attempted = "plan einsum '" + text() + "'",
                              .detail = "an array of '" + std::string(letters) + "' has more than " +
                                        std::to_string(max_elements) + " elements"});
    product *= extent;
  }
  return product;
}

Binary Binary::of(const Expression& expression, const std::string& left, const std::string& right,
                  const std::string& out) {
  const auto ordered = [&](const auto& chosen, std::initializer_list<const std::string*> arrays) {
    const std::string* best = *arrays.begin();
    for (const std::string* each : arrays)
      if (expression.elements(*each) > expression.elements(*best)) best = each;
    std::string result;
    for (const char letter : *best)
      if (chosen(letter)) result += letter;
    return result;
  };
  const auto in = [](const std::string& letters) {
    return [&letters](char letter) { return has(letters, letter); };
  };
  const auto a = in(left), b = in(right), c = in(out);
  return {{left, right, out},
          {ordered([&](char x) { return a(x) && b(x) && c(x); }, {&left, &right, &out}),
           ordered([&](char x) { return a(x) && c(x) && !b(x); }, {&left, &out}),
           ordered([&](char x) { return b(x) && c(x) && !a(x); }, {&right, &out}),
           ordered([&](char x) { return a(x) && b(x) && !c(x); }, {&left, &right})}};
}

}  // namespace outcore::tensor
