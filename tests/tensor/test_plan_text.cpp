// Texts of plans: a damaged text is refused, or computes what it describes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "array/support.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"
#include "tensor/contraction.hpp"

using namespace outcore;
using namespace outcore::tensor;

namespace {

constexpr std::int64_t memory_bytes = 6000;
constexpr int texts = 200;

std::string with_checksum(const std::string& body) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(fingerprint(std::as_bytes(std::span(body)))));
  return body + "checksum " + digits + "\n";
}
std::string without_checksum(const std::string& text) {
  return text.substr(0, text.rfind("checksum "));
}

/// ijk,lkj,m->lim of small integers in memory, and the expected result.
struct Case {
  std::vector<double> left, right, vector, out, expected;
  Extents left_shape{6, 5, 4}, right_shape{7, 4, 5}, vector_shape{3}, out_shape{7, 6, 3};

  Case() {
    for (int i = 0; i < 120; ++i) left.push_back(i % 7 - 3);
    for (int i = 0; i < 140; ++i) right.push_back(i % 5 - 2);
    vector = {2, -1, 3};
    out.assign(7 * 6 * 3, 99);
    for (int l = 0; l < 7; ++l)
      for (int i = 0; i < 6; ++i)
        for (const double factor : vector) {
          double sum = 0;
          for (int j = 0; j < 5; ++j)
            for (int k = 0; k < 4; ++k) sum += at(left, (i * 5 + j) * 4 + k) * at(right, (l * 4 + k) * 5 + j);
          expected.push_back(sum * factor);
        }
  }
  static double at(const std::vector<double>& values, int place) {
    return values[static_cast<std::size_t>(place)];
  }
  static Operand operand(std::vector<double>& values, const Extents& shape) {
    return {.memory = arrays::row_major_memory(values, shape), .shape = shape};
  }
  MakeArguments arguments(const std::string& plan) {
    return [this, plan] {
      return ContractionArguments{
          "ijk,lkj,m->lim",
          {operand(left, left_shape), operand(right, right_shape), operand(vector, vector_shape)},
          operand(out, out_shape),
          {.memory_bytes = memory_bytes, .plan = plan}};
    };
  }
};

/// A plan for this number of processes, which share panels or not.
Plan plan_for(int processes, bool sharing) {
  const Case given;
  const std::vector<Extents> shapes{given.left_shape, given.right_shape, given.vector_shape};
  const auto expression = Expression::parse("ijk,lkj,m->lim", shapes);
  std::vector<Facts> facts;
  for (const Extents& shape : shapes) facts.push_back({.shape = shape});
  facts.push_back({.shape = given.out_shape});
  Plan plan = simple_plan(expression, facts, memory_bytes, processes);
  for (ProductPlan& product : plan.products)
    if (sharing) {
      product.sharing = processes;
      const Steps steps = product.steps();
      const Group& rows = steps.groups[1];
      for (std::size_t panel = 0; panel < rows.members.size(); ++panel) {
        const std::int32_t first = rows.members[panel].front();
        const std::int64_t inner = rows.divided(first).second;
        const std::int64_t place = rows.cells[static_cast<std::size_t>(first)] / inner / 2 * inner;
        product.shares.bounds.push_back({0, place, rows.panels[panel]});
      }
    }
  return plan;
}

std::string changed(const std::string& text, std::mt19937& random) {
  const auto below = [&](std::size_t count) { return random() % count; };
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  const std::size_t at = below(lines.size() - 1) + 1;
  switch (below(6)) {
    case 0:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      std::swap(lines[at], lines[below(lines.size() - 1) + 1]);
      break;
    case 2:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), lines[at]);
      break;
    case 3:
      lines[at][below(lines[at].size())] = static_cast<char>(32 + below(95));
      break;
    default: {
      static const std::vector<std::string> others{
          "0",    "1",      "2",    "3",       "5",       "7",
          "-1",   "64",     "4096", "1048576", "2000000", "9223372036854775807",
          "ij",   "-",      "k",    "l",       "process", "global",
          "disk", "result", "left", "right",   "x"};
      std::istringstream words(lines[at]);
      std::vector<std::string> all;
      for (std::string word; words >> word;) all.push_back(word);
      if (!all.empty()) all[below(all.size())] = others[below(others.size())];
      lines[at].clear();
      for (const std::string& word : all) lines[at] += (lines[at].empty() ? "" : " ") + word;
    }
  }
  std::string result;
  for (const std::string& line : lines) result += line + "\n";
  return result;
}

/// The number of texts that were carried out, with right results; the others were refused with an error.
int carry_out_changed(int processes, bool sharing, int count) {
  const std::string text = without_checksum(plan_for(processes, sharing).text());
  int carried_out = 0;
  arrays::run(processes, false, [&](World& world) {
    std::mt19937 random(11);
    for (int i = 0; i < count; ++i) {
      const std::string plan = with_checksum(i == 0 ? text : changed(text, random));
      Case given;
      try {
        (void)contract(world, {}, given.arguments(plan));
      } catch (const Error& error) {
        check::is_true(!error.context().detail.empty());
        continue;
      }
      if (given.out != given.expected) check::equal(plan, std::string("a text that is refused"));
      if (world.rank() == 0) ++carried_out;
    }
  });
  return carried_out;
}

}  // namespace

TEST("a text says all of a plan") {
  for (const bool sharing : {false, true}) {
    const std::string text = plan_for(2, sharing).text();
    check::equal(Plan::parse(text).text(), text);
  }
}

TEST("a changed text is refused, or computes the same") {
  check::is_true(carry_out_changed(1, false, texts) > 0);
  check::is_true(carry_out_changed(2, false, texts) > 0);
  check::is_true(carry_out_changed(2, true, texts) > 0);
}

TEST("numbers that are too large are refused") {
  Plan plan = plan_for(1, false);
  plan.products[0].unit = std::int64_t{1} << 62;
  check::throws<Error>([&] { (void)Plan::parse(plan.text()); });
  plan = plan_for(1, false);
  plan.products[0].slots = {1 << 20, 1 << 20};
  check::throws<Error>([&] { (void)Plan::parse(plan.text()); });
}

TEST("arrays with more elements than there can be are refused") {
  const std::int64_t extent = std::int64_t{1} << 30;
  const std::vector<Extents> shapes(3, Extents{extent, 2});
  const auto expression = Expression::parse("ax,bx,cx->abcx", shapes);
  std::vector<Facts> facts;
  for (const Extents& shape : shapes) facts.push_back({.shape = shape});
  facts.push_back({.shape = Extents{extent, extent, extent, 2}});
  check::throws<Error>([&] { (void)simple_plan(expression, facts, memory_bytes, 1); });
}

TEST_MAIN
