#include "tensor/contraction_plan.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <numeric>

#include "outcore/error.hpp"

namespace outcore::tensor {
namespace {

constexpr std::array<std::array<int, 3>, 3> groups_of_arrays{{{0, 1, 3}, {0, 3, 2}, {0, 1, 2}}};

Group group_of(const std::vector<std::vector<std::int64_t>>& cuts, const std::vector<std::int64_t>& panels) {
  const auto axes = static_cast<int>(cuts.size());
  std::vector<std::size_t> place(cuts.size());
  std::vector<std::int64_t> intervals;
  for (std::int64_t cell = 0; cell < panels.back(); ++cell) {
    for (std::size_t axis = 0; axis < cuts.size(); ++axis) {
      intervals.push_back(cuts[axis][place[axis]]);
      intervals.push_back(cuts[axis][place[axis] + 1]);
    }
    for (std::size_t axis = cuts.size(); axis-- > 0 && ++place[axis] + 1 == cuts[axis].size();)
      place[axis] = 0;
  }
  std::vector<std::vector<std::int32_t>> members;
  for (std::size_t panel = 1; panel < panels.size(); ++panel) {
    auto& cells = members.emplace_back(static_cast<std::size_t>(panels[panel] - panels[panel - 1]));
    std::iota(cells.begin(), cells.end(), static_cast<std::int32_t>(panels[panel - 1]));
  }
  return {axes, std::move(intervals), std::move(members)};
}

Side side_of(const Binary& product, std::size_t array) {
  Side side{groups_of_arrays[array]};
  for (const char letter : product.arrays[array])
    for (int which = 0; which < 3; ++which) {
      const auto& group =
          product.groups[static_cast<std::size_t>(side.groups[static_cast<std::size_t>(which)])];
      if (has(group, letter)) side.axes.emplace_back(which, static_cast<int>(group.find(letter)));
    }
  return side;
}

}  // namespace

/// The order of rows and columns reverses at their ends, that of inner indices in every task, so that the
/// panel that was used last is used again.
Steps ProductPlan::steps() const {
  Steps steps{{group_of(cuts[0], panels[0]), group_of(cuts[1], panels[1]), group_of(cuts[2], panels[2]),
               group_of(cuts[3], panels[3])},
              {side_of(product, 0), side_of(product, 1), side_of(product, 2)},
              {},
              {}};
  const auto count = [&](std::size_t group) {
    return static_cast<std::int32_t>(steps.groups[group].members.size());
  };
  const std::int32_t inner = count(3), pieces = std::min(parts, inner);
  const std::size_t outer = keep == Keep::right ? 2 : 1, other = keep == Keep::right ? 1 : 2;
  for (std::int32_t batch = 0; batch < count(0); ++batch)
    for (std::int32_t o = 0; o < count(outer); ++o)
      for (std::int32_t p = 0; p < count(other); ++p) {
        const std::int32_t i = o % 2 == 0 ? p : count(other) - 1 - p;
        const bool is_turned = steps.task_ends.size() % 2 == 1;
        for (std::int32_t part = 0; part < pieces; ++part) {
          for (std::int32_t k = inner * part / pieces; k < inner * (part + 1) / pieces; ++k)
            steps.steps.push_back(
                {batch, outer == 1 ? o : i, outer == 1 ? i : o, is_turned ? inner - 1 - k : k});
          steps.task_ends.push_back(std::ssize(steps.steps));
        }
      }
  steps.check();
  return steps;
}

std::array<std::int64_t, 3> ProductPlan::largest(const Groups& groups) const {
  std::array<std::int64_t, 4> size{};
  for (std::size_t group = 0; group < 4; ++group) size[group] = std::ranges::max(groups[group].panels);
  std::array<std::int64_t, 4> made = size;
  if (sharing > 1) made[static_cast<std::size_t>(shares.group)] = shares.largest();
  return {size[0] * size[1] * size[3], size[0] * size[3] * size[2], made[0] * made[1] * made[2]};
}

std::int64_t ProductPlan::workspace_bytes(const Groups& groups, std::int64_t element_bytes) const {
  const auto [left_panel, right_panel, made] = largest(groups);
  const std::int64_t held = element_bytes * (slots[0] * left_panel + slots[1] * right_panel);
  return element_bytes * results * made + (held + sharing - 1) / sharing;
}

std::int64_t temporary_bytes(const Facts& facts, int processes) {
  const std::int64_t bytes = facts.shape.product() * static_cast<std::int64_t>(size_bytes(facts.type));
  if (facts.where == Where::disk) return 0;
  return facts.where == Where::global ? (bytes + processes - 1) / processes : bytes;
}

void Plan::check(const Expression& its_expression, const std::vector<Facts>& its_arrays,
                 int its_processes) const {
  const auto refuse = [&](const std::string& why) {
    throw Error(EINVAL, {.attempted = "einsum '" + its_expression.text() + "'", .detail = why});
  };
  if (expression != its_expression.text()) refuse("the plan is for '" + expression + "'");
  if (processes != its_processes)
    refuse("the plan is for " + std::to_string(processes) + " processes; here are " +
           std::to_string(its_processes));
  const auto described = [](const Facts& facts) {
    constexpr std::array places{"memory", "a global array", "a disk array"};
    std::string text = facts.shape.text() + " of " + std::string(name(facts.type)) + " in " +
                       places[static_cast<std::size_t>(facts.where)];
    if (facts.where == Where::disk) text += " with chunks of " + facts.chunk.text();
    return text;
  };
  for (std::size_t i = 0; i < its_arrays.size(); ++i)
    if (arrays[i] != its_arrays[i]) {
      const std::string which = i + 1 == its_arrays.size() ? "the result" : "operand " + std::to_string(i);
      refuse("the plan is for " + which + " of " + described(arrays[i]) + "; here it is " +
             described(its_arrays[i]));
    }
}

}  // namespace outcore::tensor
