// The loop of a product: panels come ahead of their use, threads multiply, results go to where they lie.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/sibling.hpp"
#include "outcore/world.hpp"
#include "tensor/multiply.hpp"
#include "tensor/shared_panels.hpp"

namespace outcore::tensor {

/// What is multiplied, in which panels and which order: a value. Arrays lie where they lie.
struct OUTCORE_SIBLING Steps {
  Groups groups;
  std::array<Side, 3> sides;  ///< of left, right and result
  /// Of all tasks. A task makes panels of the result or adds to them: several at a time, in any order of
  /// steps, if they end in the order in which they begin.
  std::vector<Step> steps;
  std::vector<std::int64_t> task_ends;  ///< how many steps there are up to the end of each task
  /// Rows and columns are cut alike, and a panel of the result that is not on the diagonal is put a second
  /// time, with rows and columns exchanged: tasks make one of the two.
  bool half = false;

  /// Throws Error(EINVAL) for panels and axes that are not there.
  void check() const;
  /// Of each step of a task whether it is the first and whether it is the last of its panel of the result.
  struct Turn {
    bool begins, ends;
  };
  [[nodiscard]] std::vector<Turn> turns(std::int64_t task) const;
  [[nodiscard]] std::int64_t begin_of(std::int64_t task) const {
    return task == 0 ? 0 : task_ends[static_cast<std::size_t>(task - 1)];
  }
  [[nodiscard]] std::int64_t tasks() const noexcept { return static_cast<std::int64_t>(task_ends.size()); }
};

/// How the steps are carried out.
struct Execution {
  /// Panels of the left and of the right operand that are held at a time. None of the right one: half of a
  /// result is made, and the panels of the left one serve on both sides.
  std::array<int, 2> slots;
  int results = 1;        ///< panels of the result that there is memory for: those of a task, at least
  std::int64_t unit = 1;  ///< tasks that are dealt out at a time
  int hinted = 0;         ///< steps beyond those that are asked for that owners are told of; 0: none
  int threads = 1;        ///< that multiply
  bool add = false;       ///< to what is in the result
  bool one_put = false;   ///< a result goes to where it lies when the last one has arrived there
  std::size_t element_bytes = 8;
};

/// How the processes of a node that share panels divide each panel of the result: along one group of its
/// axes.
struct Shares {
  int group = 1;                                  ///< 0 batch, 1 rows, 2 columns
  std::vector<std::vector<std::int64_t>> bounds;  ///< of each panel of the group, where shares begin and end

  /// Throws Error(EINVAL) if so many processes do not have all of each panel together.
  void check(const Groups& groups, int processes) const;
  /// Of a process, of a panel of the result.
  [[nodiscard]] Share of(int process, const Panel& panel) const;
  [[nodiscard]] std::int64_t largest() const;  ///< elements of the group in any share
};

/// What processes of a node that make results together have; memory: null, if each works for itself.
struct Sharing {
  NodePanels* memory = nullptr;
  Shares shares = {};
};

/// The arrays, which the caller keeps.
struct Arrays {
  Boxes &left, &right, &out;
};

/// What was moved and multiplied by this process.
struct Moved {
  std::array<std::int64_t, 2> got{};  ///< elements of the left and of the right operand
  std::int64_t put = 0;               ///< elements of the result
  double flops = 0;
};

/// Called now and then with the part of all tasks that is done, by the task that was worked on last, that
/// task's number, and how many of the tasks up to it are complete; true: nothing more is to be begun.
using Watch = std::function<bool(double fraction, std::int64_t tasks)>;

/// This process's part of a product. Pieces of work are dealt out by `counter`, which is at zero; null: all
/// is done here, or on this node. Returns when all is put, when `watch` has said so, or when another process
/// of the node has failed. Throws the first error (EINVAL: shares that do not fit), and leaves nothing to
/// other processes then. Nothing is under way afterwards.
OUTCORE_SIBLING Moved carry_out(const Steps& steps, const Execution& how, const Arrays& arrays,
                                const Multiply& multiply, Counter* counter, const Watch& watch,
                                const Sharing& sharing = {});

}  // namespace outcore::tensor
