// Plans without a search: panels are halved until they fit.
#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "outcore/error.hpp"
#include "tensor/contraction_plan.hpp"

namespace outcore::tensor {
namespace {

constexpr std::int64_t most_steps = 200'000;
constexpr std::int64_t small_panel = 4096;  // elements of the result: smaller ones are not divided further
constexpr std::int64_t of_each = 4;         // panels of the result, for each process
constexpr std::int64_t units_of_each = 8;
constexpr std::int64_t endless = std::int64_t{1} << 60;  // bytes

using Cuts = std::vector<std::int64_t>;

/// Nearly equal intervals of at most `most` elements.
Cuts cut(std::int64_t extent, std::int64_t most) {
  const std::int64_t parts = std::max<std::int64_t>(1, (extent + most - 1) / most);
  Cuts result;
  for (std::int64_t i = 0; i <= parts; ++i) result.push_back(extent * i / parts);
  return result;
}

/// Cells of at most `most` elements: inner axes are whole, one axis is cut, outer axes are cut into single
/// elements. Panels take cells in order.
void divide(const Expression& expression, const std::string& letters, std::int64_t most,
            std::vector<Cuts>& cuts, std::vector<std::int64_t>& panels) {
  cuts.assign(letters.size(), {});
  std::int64_t room = most, cells = 1, largest = 1;
  bool is_cut = false;
  for (std::size_t axis = letters.size(); axis-- > 0;) {
    const std::int64_t extent = expression.extents.at(letters[axis]);
    cuts[axis] = cut(extent, is_cut ? 1 : std::min(room, extent));
    const std::int64_t intervals = std::ssize(cuts[axis]) - 1;
    is_cut = is_cut || extent > room;
    room = std::max<std::int64_t>(1, room / extent);
    cells *= intervals;
    largest *= (extent + intervals - 1) / intervals;
  }
  const std::int64_t each = std::max<std::int64_t>(1, most / largest);
  panels = cut(cells, each);
}

class Halving {
 public:
  Halving(const Expression& expression, const Binary& product, std::int64_t element_bytes, int processes)
      : expression_(expression), product_(product), element_bytes_(element_bytes), processes_(processes) {
    for (std::size_t group = 0; group < 4; ++group) most_[group] = expression.elements(product.groups[group]);
  }

  /// None if no panels fit.
  std::optional<ProductPlan> plan(std::int64_t memory_bytes) {
    while (workspace() > memory_bytes)
      if (!halve({0}) && !halve({1, 2, 3})) return std::nullopt;
    ProductPlan result;
    while (processes_ > 1 && tasks() < of_each * processes_ && result_panel() > small_panel)
      if (!halve({0, 1, 2})) break;
    if (tasks() < processes_) {
      result.parts = static_cast<int>(processes_ / tasks());
      while (count(3) < result.parts && halve({3})) {
      }
    }
    result.product = product_;
    double steps = 1;
    for (std::size_t group = 0; group < 4; ++group) {
      divide(expression_, product_.groups[group], most_[group], result.cuts[group], result.panels[group]);
      steps *= static_cast<double>(result.panels[group].size() - 1);
    }
    if (steps > static_cast<double>(most_steps)) return std::nullopt;
    result.parts = std::min(result.parts, static_cast<int>(result.panels[3].size() - 1));
    const auto tasks = static_cast<std::int64_t>(steps) / (std::ssize(result.panels[3]) - 1) * result.parts;
    result.unit = std::max<std::int64_t>(1, processes_ > 1 ? tasks / (units_of_each * processes_) : tasks);
    return result;
  }

 private:
  [[nodiscard]] std::int64_t result_panel() const { return most_[0] * most_[1] * most_[2]; }
  [[nodiscard]] std::int64_t workspace() const {
    return element_bytes_ * (result_panel() + 2 * most_[0] * most_[3] * (most_[1] + most_[2]));
  }
  [[nodiscard]] std::int64_t count(std::size_t group) const {
    return (expression_.elements(product_.groups[group]) + most_[group] - 1) / most_[group];
  }
  [[nodiscard]] std::int64_t tasks() const { return count(0) * count(1) * count(2); }
  bool halve(std::initializer_list<std::size_t> groups) {
    const std::size_t largest =
        *std::ranges::max_element(groups, {}, [&](std::size_t g) { return most_[g]; });
    if (most_[largest] <= 1) return false;
    most_[largest] = (most_[largest] + 1) / 2;
    return true;
  }

  const Expression& expression_;
  const Binary& product_;
  std::int64_t element_bytes_;
  int processes_;
  std::array<std::int64_t, 4> most_{};
};

std::string kept_letters(const std::string& letters, const std::string& others) {
  std::string result;
  for (const char letter : letters)
    if (has(others, letter) && !has(result, letter)) result += letter;
  return result;
}

class Planner {
 public:
  Planner(const Expression& expression, const std::vector<Facts>& arrays, std::int64_t memory_bytes,
          int processes)
      : expression_(expression),
        arrays_(arrays),
        memory_bytes_(memory_bytes),
        processes_(processes),
        letters_(expression.inputs) {
    for (int number = 0; number < std::ssize(expression.inputs); ++number) left_.push_back(number);
  }

  std::optional<Plan> plan() {
    Plan result{expression_.text(), arrays_, memory_bytes_, processes_, {}};
    const auto count = std::ssize(expression_.inputs);
    for (int number = 0; number < count && count > 1; ++number) {  // letters of one operand alone are summed
      const std::string& own = letters_[static_cast<std::size_t>(number)];
      const std::string kept = kept_letters(own, letters_but(number, -1));
      if (kept.size() < own.size() && !add(result, number, -1, kept)) return std::nullopt;
    }
    if (count == 1 && !add(result, left_.front(), -1, expression_.output)) return std::nullopt;
    while (left_.size() > 1) {
      const int a = left_[0], b = left_[1];
      std::string out = expression_.output;
      if (left_.size() > 2)
        out = kept_letters(letters_[static_cast<std::size_t>(a)] + letters_[static_cast<std::size_t>(b)],
                           letters_but(a, b));
      if (!add(result, a, b, out)) return std::nullopt;
    }
    return result;
  }

 private:
  /// The letters of the output, and of all arrays that are left except two.
  [[nodiscard]] std::string letters_but(int a, int b) const {
    std::string result = expression_.output;
    for (const int each : left_)
      if (each != a && each != b) result += letters_[static_cast<std::size_t>(each)];
    return result;
  }

  bool add(Plan& plan, int a, int b, const std::string& out) {
    const std::string left = letters_[static_cast<std::size_t>(a)];
    std::string right;
    if (b >= 0)
      right = letters_[static_cast<std::size_t>(b)];
    else
      for (const char letter : left)
        if (!has(out, letter)) right += letter;
    const ElementType type = arrays_.front().type;
    const Binary product = Binary::of(expression_, left, right, out);
    const bool is_last = left_.size() == (b >= 0 ? 2 : 1) && out == expression_.output;
    if (out.size() > max_rank) return false;
    std::int64_t taken = 0;
    for (const auto& [number, bytes] : in_memory_) taken += bytes;
    Facts facts{type, expression_.shape(out), Where::process, {}};
    if (!is_last && !out.empty()) {
      facts.where = processes_ == 1 ? Where::process : Where::global;
      if (temporary_bytes(facts, processes_) > memory_bytes_ / 2 - taken) facts.where = Where::disk;
      const std::int64_t own = temporary_bytes(facts, processes_);
      in_memory_[static_cast<int>(letters_.size())] = own;
      taken += own;
    }
    Halving halving(expression_, product, static_cast<std::int64_t>(size_bytes(type)), processes_);
    auto found = halving.plan(memory_bytes_ - taken);
    if (!found) return false;
    found->left = a;
    found->right = b;
    found->is_last = is_last;
    found->where = facts.where;
    plan.products.push_back(std::move(*found));
    std::erase_if(left_, [&](int each) { return each == a || each == b; });
    in_memory_.erase(a);
    in_memory_.erase(b);
    left_.insert(left_.begin(), static_cast<int>(letters_.size()));
    letters_.push_back(out);
    return true;
  }

  const Expression& expression_;
  const std::vector<Facts>& arrays_;
  std::int64_t memory_bytes_;
  int processes_;
  std::vector<std::string> letters_;
  std::vector<int> left_;  ///< arrays that no product has used yet
  std::map<int, std::int64_t> in_memory_;
};

}  // namespace

Plan simple_plan(const Expression& expression, const std::vector<Facts>& arrays, std::int64_t memory_bytes,
                 int processes) {
  const auto found = [&](std::int64_t memory) {
    return Planner(expression, arrays, memory, processes).plan();
  };
  if (auto plan = found(memory_bytes)) return std::move(*plan);
  std::int64_t low = memory_bytes, high = std::max<std::int64_t>(64, 2 * memory_bytes);
  while (!found(high)) {
    if (high > endless)
      throw Error(ENOMEM, {.attempted = "plan einsum '" + expression.text() + "'",
                           .detail = "no memory is enough: an intermediate array has more than " +
                                     std::to_string(max_rank) + " axes"});
    low = std::exchange(high, 2 * high);
  }
  while (high - low > std::max<std::int64_t>(1, high >> 10))
    (found((low + high) / 2) ? high : low) = (low + high) / 2;
  throw Error(ENOMEM, {.attempted = "plan einsum '" + expression.text() + "'",
                       .detail = "the smallest panels take " + std::to_string(high) + " bytes, in at most " +
                                 std::to_string(most_steps) +
                                 " steps, with intermediate arrays that are in memory; of memory there are " +
                                 std::to_string(memory_bytes) + " bytes, " +
                                 std::to_string(high - memory_bytes) + " too few"});
}

}  // namespace outcore::tensor
