// The loop of a product: panels are fetched ahead of their use, threads multiply, results are put to their
// array.
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

/// The panels that are multiplied, and their order. A value; independent of where arrays lie.
struct OUTCORE_SIBLING Steps {
  Groups groups;
  std::array<Side, 3> sides;  ///< of left, right and result
  /// The steps of all tasks. A task makes panels of the result or adds to them. It may make several at a
  /// time, with any order of steps, if the panels end in the order in which they begin.
  std::vector<Step> steps;
  std::vector<std::int64_t> task_ends;  ///< number of steps up to the end of each task
  /// Rows and columns are cut alike. Of two panels of the result that mirror each other, tasks make one; it
  /// is put a second time with rows and columns exchanged.
  bool half = false;

  /// Throws Error(EINVAL) for panels and axes that do not exist.
  void check() const;
  /// Whether a step is the first, and whether it is the last, for its panel of the result.
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
  /// Number of panels of the left and of the right operand that are held at a time. 0 for the right one: half
  /// of a result is made, and the panels of the left one serve on both sides.
  std::array<int, 2> slots;
  int results = 1;        ///< panels of the result in memory: at least those that a task makes at a time
  std::int64_t unit = 1;  ///< tasks that are dealt out at a time
  int hinted = 0;         ///< how many further steps get a prefetch hint; 0: none
  int threads = 1;        ///< threads that multiply, at least one
  bool add = false;       ///< add to the elements of the result
  bool one_put = false;   ///< a result is put when the put of the last one is complete
  std::size_t element_bytes = 8;
};

/// How the processes of a node that share panels divide each panel of the result: along one group of axes.
struct Shares {
  int group = 1;                                  ///< 0 batch, 1 rows, 2 columns
  std::vector<std::vector<std::int64_t>> bounds;  ///< for each panel of the group, where shares begin and end

  /// Throws Error(EINVAL) unless the shares of `processes` processes cover each panel.
  void check(const Groups& groups, int processes) const;
  /// The share of a process of a panel of the result.
  [[nodiscard]] Share of(int process, const Panel& panel) const;
  [[nodiscard]] std::int64_t largest() const;  ///< elements of the group in any share
};

/// The common memory and the shares of processes of a node that make results together; memory null: each
/// process works alone.
struct Sharing {
  NodePanels* memory = nullptr;
  Shares shares = {};
};

/// The arrays, which the caller keeps.
struct Arrays {
  Boxes &left, &right, &out;
};

/// Traffic and operations of this process.
struct Moved {
  std::array<std::int64_t, 2> got{};  ///< elements got of the left and of the right operand
  std::int64_t put = 0;               ///< elements put of the result
  double flops = 0;
};

/// Called now and then with the fraction of all tasks that is done (judged by the number of the last task),
/// and with the number of complete tasks up to it. If it returns true, no more work begins.
using Watch = std::function<bool(double fraction, std::int64_t tasks)>;

/// Does this process's part of a product. `counter`, which is at zero, deals out units of work; null: this
/// process, or this node, does all. Returns when all results are put, when `watch` ends the work, or when
/// another process of the node has failed. Throws the first error (EINVAL: shares that do not fit, or an
/// execution without threads, tasks or memory for its panels), and tells the processes that share panels. No
/// transfer is under way afterwards.
OUTCORE_SIBLING Moved carry_out(const Steps& steps, const Execution& how, const Arrays& arrays,
                                const Multiply& multiply, Counter* counter, const Watch& watch,
                                const Sharing& sharing = {});

}  // namespace outcore::tensor
