// How a contraction of dense arrays is carried out: a value, which has a text. Python's planner writes such
// texts (Plan.text), and `simple_plan` makes one where there is none.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "outcore/element_type.hpp"
#include "tensor/expression.hpp"
#include "tensor/product.hpp"

namespace outcore::tensor {

/// Where an array lies.
enum class Where { process, global, disk };

/// What a plan depends on.
struct Facts {
  ElementType type = ElementType::float64;
  Extents shape = {};
  Where where = Where::process;
  Extents chunk = {};  ///< of an array on disk

  friend bool operator==(const Facts&, const Facts&) = default;
};

/// What stays while the rest passes by: a panel of the result alone, or with it all panels of the left
/// operand that belong to its rows, or all of the right one that belong to its columns.
enum class Keep { result, left, right };

/// One product. Arrays are those of the expression, from 0, then results of earlier products.
struct ProductPlan {
  int left = 0, right = 0;  ///< right -1: ones, to sum with
  Binary product;
  bool is_last = false;  ///< its result is that of the contraction
  Where where = Where::process;
  std::array<std::vector<std::vector<std::int64_t>>, 4> cuts;  ///< of each axis of each group: 0, .., extent
  std::array<std::vector<std::int64_t>, 4>
      panels;  ///< of each group: first cells of its panels, and their end
  Keep keep = Keep::result;
  int parts = 1;  ///< of each panel of the result so many tasks, each with a range of inner indices
  std::array<int, 2> slots{2, 2};
  int results = 1;
  std::int64_t unit = 1;
  int sharing = 1;  ///< processes of a node that share panels
  Shares shares = {};

  [[nodiscard]] Steps steps() const;
  /// Elements of a panel of left, right and result, at most; of a share of that, if panels are shared.
  [[nodiscard]] std::array<std::int64_t, 3> largest(const Groups& groups) const;
  /// Of a process, for elements of so many bytes.
  [[nodiscard]] std::int64_t workspace_bytes(const Groups& groups, std::int64_t element_bytes) const;
};

struct Plan {
  std::string expression;
  std::vector<Facts> arrays;  ///< inputs, then the output
  std::int64_t memory_bytes = 0;
  int processes = 1;
  std::vector<ProductPlan> products;

  [[nodiscard]] std::string text() const;
  /// Throws Error(EINVAL) for what is no plan, says where, and for one that does not compute its expression;
  /// Error(ENOTSUP) for another format.
  [[nodiscard]] static Plan parse(std::string_view text);
  /// Throws Error(EINVAL) for a plan of other arrays or processes.
  void check(const Expression& its_expression, const std::vector<Facts>& its_arrays, int its_processes) const;
};

/// Products from left to right, in panels that fit: not the fastest that there is. Throws Error(ENOMEM) that
/// says how much memory does.
[[nodiscard]] Plan simple_plan(const Expression& expression, const std::vector<Facts>& arrays,
                               std::int64_t memory_bytes, int processes);

/// Bytes of an array that a plan makes, in the memory of a process.
[[nodiscard]] std::int64_t temporary_bytes(const Facts& facts, int processes);

}  // namespace outcore::tensor
