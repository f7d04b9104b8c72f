// Plans: how a contraction of dense arrays is carried out. A plan is a value that has a text. Python's
// planner writes such texts (Plan.text); `simple_plan` makes a plan if there is no text.
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

/// The facts of an array on which a plan depends.
struct Facts {
  ElementType type = ElementType::float64;
  Extents shape = {};
  Where where = Where::process;
  Extents chunk = {};  ///< of an array on disk

  friend bool operator==(const Facts&, const Facts&) = default;
};

/// The panels that stay in memory while others are read: a panel of the result alone, or also all panels of
/// the left operand for its rows, or all panels of the right operand for its columns.
enum class Keep { result, left, right };

/// One product. Numbers of arrays: first those of the expression, from 0, then the results of earlier
/// products.
struct ProductPlan {
  int left = 0, right = 0;  ///< right -1: ones, for sums over an index
  Binary product;
  bool is_last = false;  ///< its result is that of the contraction
  Where where = Where::process;
  std::array<std::vector<std::vector<std::int64_t>>, 4> cuts;  ///< for each axis of each group: 0 to extent
  std::array<std::vector<std::int64_t>, 4>
      panels;  ///< for each group: first cells of its panels, and the end
  Keep keep = Keep::result;
  int parts = 1;  ///< tasks for each panel of the result, each with a range of inner indices
  std::array<int, 2> slots{2, 2};
  int results = 1;
  std::int64_t unit = 1;
  int sharing = 1;  ///< processes of a node that share panels
  Shares shares = {};

  [[nodiscard]] Steps steps() const;
  /// The most elements of a panel of left, right and result; of a share of the result, if panels are shared.
  [[nodiscard]] std::array<std::int64_t, 3> largest(const Groups& groups) const;
  /// Work space of a process.
  [[nodiscard]] std::int64_t workspace_bytes(const Groups& groups, std::int64_t element_bytes) const;
};

struct Plan {
  std::string expression;
  std::vector<Facts> arrays;  ///< inputs, then the output
  std::int64_t memory_bytes = 0;
  int processes = 1;
  std::vector<ProductPlan> products;

  [[nodiscard]] std::string text() const;
  /// Reads a plan. Throws Error(EINVAL) for a text that is no plan (the message says where), and for a plan
  /// that does not compute its expression; Error(ENOTSUP) for another format.
  [[nodiscard]] static Plan parse(std::string_view text);
  /// Throws Error(EINVAL) for a plan of other arrays, or of another number of processes.
  void check(const Expression& its_expression, const std::vector<Facts>& its_arrays, int its_processes) const;
};

/// A plan of products from left to right, in panels that fit: not the fastest plan. Throws Error(ENOMEM),
/// which says how much memory is enough.
[[nodiscard]] Plan simple_plan(const Expression& expression, const std::vector<Facts>& arrays,
                               std::int64_t memory_bytes, int processes);

/// Bytes of an intermediate array of a plan in the memory of a process.
[[nodiscard]] std::int64_t temporary_bytes(const Facts& facts, int processes);

}  // namespace outcore::tensor
