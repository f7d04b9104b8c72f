// Plans as text: lines of words, and their checksum at the end.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <utility>

#include "outcore/error.hpp"
#include "outcore/world.hpp"
#include "tensor/contraction_plan.hpp"

namespace outcore::tensor {
namespace {

constexpr std::string_view heading = "outcore-plan 1";
constexpr std::string_view last_word = "checksum ";
constexpr std::int64_t most_cells = 1'000'000, most_steps = 2'000'000;
constexpr std::array<std::string_view, 3> places{"process", "global", "disk"},
    keeps{"result", "left", "right"};
constexpr std::array<std::string_view, 4> group_names{"batch", "rows", "columns", "inner"};

std::string checksum(std::string_view text) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(fingerprint(std::as_bytes(std::span(text)))));
  return digits;
}

[[noreturn]] void refuse(const std::string& why, int code = EINVAL) {
  throw Error(code, {.attempted = "read a plan", .detail = why});
}

/// Lines, word by word.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  [[nodiscard]] bool begins(std::string_view word) const {
    return text_.starts_with(std::string(word) + " ");
  }
  /// The words of the next line after its first word, which must be the given one.
  void line(std::string_view word) {
    ++number_;
    const std::size_t end = text_.find('\n');
    rest_ = text_.substr(0, end);
    text_ = end == std::string_view::npos ? std::string_view() : text_.substr(end + 1);
    const auto found = next();
    if (!found || *found != word) fail("there is no '" + std::string(word) + "'");
  }
  [[nodiscard]] std::optional<std::string_view> next() {
    if (rest_.empty()) return std::nullopt;
    const std::size_t end = rest_.find(' ');
    const std::string_view word = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    return word;
  }
  [[nodiscard]] std::string word() {
    const auto found = next();
    if (!found) fail("a word is missing");
    return std::string(*found);
  }
  /// An optional value; "-" is none.
  [[nodiscard]] std::string letters() {
    const std::string found = word();
    return found == "-" ? std::string() : found;
  }
  [[nodiscard]] std::int64_t number(std::int64_t least,
                                    std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    const std::string found = word();
    return number_of(found, least, most);
  }
  [[nodiscard]] int count(std::int64_t most = 1 << 20) { return static_cast<int>(number(1, most)); }
  /// The rest of the line, or up to a word.
  [[nodiscard]] std::vector<std::int64_t> numbers(std::string_view until = {}) {
    std::vector<std::int64_t> result;
    while (const auto found = next()) {
      if (!until.empty() && *found == until) break;
      result.push_back(number_of(std::string(*found), 0, std::numeric_limits<std::int64_t>::max()));
    }
    return result;
  }
  template <std::size_t n>
  [[nodiscard]] int one_of(const std::array<std::string_view, n>& names) {
    const std::string found = word();
    const auto place = std::ranges::find(names, found);
    if (place == names.end()) fail("'" + found + "' is not known");
    return static_cast<int>(place - names.begin());
  }
  void end() {
    if (!rest_.empty()) fail("there is more: '" + std::string(rest_) + "'");
  }
  [[nodiscard]] bool is_at_end() const { return text_.empty(); }
  [[noreturn]] void fail(const std::string& why) const {
    refuse("line " + std::to_string(number_) + ": " + why);
  }

 private:
  std::int64_t number_of(const std::string& word, std::int64_t least, std::int64_t most) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size()) fail("'" + word + "' is no number");
    if (value < least || value > most)
      fail(word + " is not " + std::to_string(least) + " to " + std::to_string(most));
    return value;
  }

  std::string_view text_, rest_;
  int number_ = 1;  // the heading was read before
};

std::string or_none(const std::string& letters) {
  return letters.empty() ? "-" : letters;
}

void write(std::ostream& out, std::string_view name, const std::vector<std::int64_t>& numbers) {
  out << name;
  for (const std::int64_t each : numbers) out << ' ' << each;
  out << '\n';
}

Facts read_facts(Reader& reader) {
  Facts facts;
  facts.type = element_type(reader.word());
  facts.where = static_cast<Where>(reader.one_of(places));
  if (reader.word() != "shape") reader.fail("there is no 'shape'");
  const auto shape = reader.numbers("chunk"), chunk = reader.numbers();
  facts.shape = Extents(shape);
  facts.chunk = Extents(chunk);
  return facts;
}

void write_facts(std::ostream& out, std::string_view what, const Facts& facts) {
  out << what << ' ' << name(facts.type) << ' ' << places[static_cast<std::size_t>(facts.where)] << " shape";
  for (const std::int64_t each : facts.shape.values()) out << ' ' << each;
  if (facts.chunk.rank() > 0) out << " chunk";
  for (const std::int64_t each : facts.chunk.values()) out << ' ' << each;
  out << '\n';
}

/// Boundaries that rise from 0 to `end`.
std::vector<std::int64_t> read_boundaries(Reader& reader, std::int64_t end) {
  auto found = reader.numbers();
  if (found.size() < 2 || found.front() != 0 || found.back() != end ||
      std::ranges::adjacent_find(found, std::greater_equal<>()) != found.end())
    reader.fail("boundaries do not rise from 0 to " + std::to_string(end));
  return found;
}

void read_group(Reader& reader, const Expression& expression, std::size_t group, ProductPlan& product) {
  reader.line(group_names[group]);
  const std::string letters = reader.letters();
  reader.end();
  std::string& own = product.product.groups[group];
  if (!std::ranges::is_permutation(letters, own))
    reader.fail("the letters are '" + letters + "', not '" + own + "'");
  own = letters;
  std::int64_t cells = 1;
  for (const char letter : letters) {
    reader.line("cuts");
    if (reader.word() != std::string(1, letter))
      reader.fail(std::string("these are not those of '") + letter + "'");
    product.cuts[group].push_back(read_boundaries(reader, expression.extents.at(letter)));
    cells *= std::ssize(product.cuts[group].back()) - 1;
    if (cells > most_cells) reader.fail("there are too many cells");
  }
  reader.line("panels");
  product.panels[group] = read_boundaries(reader, cells);
}

ProductPlan read_product(Reader& reader, const Expression& expression, int arrays) {
  ProductPlan product;
  reader.line("product");
  product.left = static_cast<int>(reader.number(0, arrays - 1));
  product.right = static_cast<int>(reader.number(-1, arrays - 1));
  std::array<std::string, 3> letters;
  for (std::string& each : letters) {
    each = reader.letters();
    for (const char letter : each)
      if (!expression.extents.contains(letter)) reader.fail(std::string("'") + letter + "' is in no operand");
  }
  product.product = Binary::of(expression, letters[0], letters[1], letters[2]);
  constexpr std::array<std::string_view, 4> results{"process", "global", "disk", "result"};
  const int where = reader.one_of(results);
  product.is_last = where == 3;
  product.where = product.is_last ? Where::process : static_cast<Where>(where);
  reader.end();
  reader.line("way");
  product.keep = static_cast<Keep>(reader.one_of(keeps));
  product.parts = reader.count();
  for (int& each : product.slots) each = reader.count();
  product.results = reader.count(16);
  product.unit = reader.count(most_steps);
  product.sharing = reader.count();
  reader.end();
  double steps = 1;
  for (std::size_t group = 0; group < 4; ++group) {
    read_group(reader, expression, group, product);
    steps *= static_cast<double>(product.panels[group].size() - 1);
  }
  if (steps > static_cast<double>(most_steps)) reader.fail("there are too many steps");
  if (product.sharing > 1) {
    reader.line("shares");
    product.shares.group = static_cast<int>(reader.number(0, 2));
    const auto all = reader.numbers();
    const auto each = static_cast<std::size_t>(product.sharing) + 1;
    if (all.size() % each != 0) reader.fail("they are not those of " + std::to_string(product.sharing));
    for (auto first = all.begin(); first != all.end(); first += static_cast<std::ptrdiff_t>(each))
      product.shares.bounds.emplace_back(first, first + static_cast<std::ptrdiff_t>(each));
  }
  return product;
}

/// Throws for products that do not compute the expression. Each array must be used once, and a letter must be
/// summed when no other array has it.
void check_products(const Plan& plan, const Expression& expression) {
  std::vector<std::string> letters = expression.inputs;
  std::set<int> unused;
  for (int i = 0; i < std::ssize(letters); ++i) unused.insert(i);
  for (std::size_t number = 0; number < plan.products.size(); ++number) {
    const ProductPlan& each = plan.products[number];
    const auto fail = [&](const std::string& why) {
      refuse("product " + std::to_string(number) + ": " + why);
    };
    const auto& [left, right, out] = each.product.arrays;
    if (each.left == each.right || !unused.erase(each.left) || (each.right >= 0 && !unused.erase(each.right)))
      fail("an operand was used before, or is not there");
    if (left != letters[static_cast<std::size_t>(each.left)] ||
        (each.right >= 0 && right != letters[static_cast<std::size_t>(each.right)]))
      fail("an operand has other letters");
    std::string needed = expression.output;
    for (const int other : unused) needed += letters[static_cast<std::size_t>(other)];
    std::string seen;
    for (const char letter : left + right) {
      if (has(seen, letter)) continue;
      seen += letter;
      if (has(out, letter)) continue;
      if (has(needed, letter)) fail(std::string("'") + letter + "' is summed too early");
      if (!has(left, letter) || !has(right, letter))
        fail(std::string("'") + letter + "' is in one operand alone, and not in the result");
    }
    for (const std::string* letters_of : {&left, &right, &out})
      for (const char letter : *letters_of)
        if (std::ranges::count(*letters_of, letter) > 1)
          fail(std::string("'") + letter + "' is twice in an array");
    for (const char letter : out)
      if (!has(seen, letter)) fail(std::string("'") + letter + "' is in no operand");
    if (each.right < 0)
      for (const char letter : right)
        if (!has(left, letter) || has(out, letter))
          fail("the letters of the ones are not those that are summed");
    if (out.size() > max_rank) fail("its result has too many axes");
    const bool is_last = number + 1 == plan.products.size();
    if (each.is_last != is_last || (is_last && out != expression.output))
      fail("it does not end in the result");
    if (!is_last && each.where == Where::process && plan.processes > 1 && !out.empty())
      fail("its result is in memory of one process");
    if (each.sharing > 1 && plan.processes % each.sharing != 0)
      fail("another number of processes shares its panels");
    letters.push_back(out);
    unused.insert(static_cast<int>(letters.size()) - 1);
    const Steps steps = each.steps();
    if (each.sharing > 1) each.shares.check(steps.groups, each.sharing);
    const auto bytes =
        each.workspace_bytes(steps.groups, static_cast<std::int64_t>(size_bytes(plan.arrays.front().type)));
    if (bytes > plan.memory_bytes)
      fail("its panels take " + std::to_string(bytes) + " bytes, of memory there are " +
           std::to_string(plan.memory_bytes));
  }
  if (!plan.products.empty() && unused.size() != 1) refuse("an array is used by no product");
}

}  // namespace

std::string Plan::text() const {
  std::ostringstream out;
  out << heading << "\neinsum " << expression << '\n';
  for (const Facts& each : arrays) write_facts(out, &each == &arrays.back() ? "result" : "operand", each);
  out << "memory " << memory_bytes << "\nprocesses " << processes << '\n';
  for (const ProductPlan& each : products) {
    const auto& [left, right, result] = each.product.arrays;
    out << "product " << each.left << ' ' << each.right << ' ' << or_none(left) << ' ' << or_none(right)
        << ' ' << or_none(result) << ' '
        << (each.is_last ? "result" : places[static_cast<std::size_t>(each.where)]) << "\nway "
        << keeps[static_cast<std::size_t>(each.keep)] << ' ' << each.parts << ' ' << each.slots[0] << ' '
        << each.slots[1] << ' ' << each.results << ' ' << each.unit << ' ' << each.sharing << '\n';
    for (std::size_t group = 0; group < 4; ++group) {
      const std::string& letters = each.product.groups[group];
      out << group_names[group] << ' ' << or_none(letters) << '\n';
      for (std::size_t axis = 0; axis < letters.size(); ++axis)
        write(out, std::string("cuts ") + letters[axis], each.cuts[group][axis]);
      write(out, "panels", each.panels[group]);
    }
    if (each.sharing > 1) {
      std::vector<std::int64_t> all{each.shares.group};
      for (const auto& bounds : each.shares.bounds) all.insert(all.end(), bounds.begin(), bounds.end());
      write(out, "shares", all);
    }
  }
  const std::string text = out.str();
  return text + std::string(last_word) + checksum(text) + "\n";
}

Plan Plan::parse(std::string_view text) {
  const std::string first(text.substr(0, text.find('\n')));
  if (first != heading) {
    if (first.starts_with("outcore-plan "))
      refuse("'" + first + "': this library knows '" + std::string(heading) + "'", ENOTSUP);
    refuse("it begins with '" + first.substr(0, 40) + "'");
  }
  const std::size_t end = text.rfind(last_word);
  if (end == std::string_view::npos || text[end - 1] != '\n') refuse("it is cut off: there is no checksum");
  const std::string_view body = text.substr(0, end);
  std::string_view found = text.substr(end + last_word.size());
  while (!found.empty() && (found.back() == '\n' || found.back() == ' ')) found.remove_suffix(1);
  if (found != checksum(body))
    refuse("it is damaged: its checksum is " + std::string(found) + ", that of the text " + checksum(body));

  Reader reader(body.substr(heading.size() + 1));
  Plan plan;
  reader.line("einsum");
  const std::string subscripts = reader.word();
  reader.end();
  std::vector<Extents> shapes;
  while (reader.begins("operand")) {
    reader.line("operand");
    plan.arrays.push_back(read_facts(reader));
    shapes.push_back(plan.arrays.back().shape);
  }
  const Expression expression = Expression::parse(subscripts, shapes);
  plan.expression = expression.text();
  reader.line("result");
  plan.arrays.push_back(read_facts(reader));
  if (plan.arrays.back().shape != expression.shape(expression.output))
    reader.fail("the result has another shape");
  reader.line("memory");
  plan.memory_bytes = reader.number(0);
  reader.end();
  reader.line("processes");
  plan.processes = reader.count();
  reader.end();
  const bool is_empty =
      std::ranges::any_of(expression.extents, [](const auto& each) { return each.second == 0; });
  while (!reader.is_at_end()) {
    if (is_empty) reader.fail("nothing is multiplied, for an extent is 0");
    plan.products.push_back(
        read_product(reader, expression, static_cast<int>(expression.inputs.size() + plan.products.size())));
  }
  if (plan.products.empty() && !is_empty) refuse("there are no products");
  check_products(plan, expression);
  return plan;
}

}  // namespace outcore::tensor
