// The panels of both operands of a product, fetched ahead of their use.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "outcore/world.hpp"
#include "tensor/panels.hpp"

namespace outcore::tensor {

/// One product of panels, given by their numbers: result[batch, rows, columns] += left[batch, rows, inner]
/// right[batch, inner, columns]. inner -1: the result is zero.
struct Step {
  std::int32_t batch, rows, columns, inner;
};

/// A panel that a step multiplies: of the left operand (0) or of the right one (1), or of the left one with
/// rows and columns exchanged.
struct Wanted {
  std::size_t operand;
  Panel panel;
  bool turned = false;
};

/// The panel on the left (side 0) or on the right (side 1) of a step. `one`: there is one operand, and its
/// panels serve on both sides.
[[nodiscard]] inline Wanted wanted(const Step& step, int side, bool one) {
  if (side == 0) return {0, {step.batch, step.rows, step.inner}};
  if (one) return {0, {step.batch, step.columns, step.inner}, true};
  return {1, {step.batch, step.inner, step.columns}};
}

/// The number of steps whose panels the slots can hold at a time, whatever these panels are. With no slots
/// for the right operand, the slots of the left one have the panels of both sides.
[[nodiscard]] inline std::int64_t steps_held(const std::array<int, 2>& slots) {
  return slots[1] == 0 ? slots[0] / 2 : std::min(slots[0], slots[1]);
}
/// The number of consecutive steps of a task whose panels the slots hold at a time, `most` at most: the mean
/// over its first `most` steps, of which each may be the first of so many.
[[nodiscard]] std::int64_t steps_together(std::span<const Step> steps, const std::array<int, 2>& slots,
                                          std::int64_t most);

/// The panels of both operands. The caller begins steps, then waits for them, then releases them, always in
/// the same order.
class Operands {
 public:
  using Pair = std::array<Matrices, 2>;
  using Stopped = std::function<bool()>;

  Operands() = default;
  virtual ~Operands() = default;  ///< nothing is under way afterwards
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  /// The number of a unit of work that no other process gets; `count` or more: none is left.
  [[nodiscard]] virtual std::int64_t next_unit(std::int64_t count, const Stopped& stopped) = 0;
  /// Whether the slots for the panels of a step are free now: no step under way uses them.
  [[nodiscard]] virtual bool may_begin(const Step& step) const = 0;
  /// Asks for the panels of a step. At most `ahead` steps may be begun and not released.
  virtual void begin(const Step& step) = 0;
  /// Gives a prefetch hint for the panels of a step.
  virtual void hint(const Step& step) = 0;
  /// Waits for the panels of a step, and returns them; none if all processes must stop. Throws the error of a
  /// transfer.
  [[nodiscard]] virtual std::optional<Pair> wait(const Stopped& stopped) = 0;
  /// Ends the use of the panels of a step.
  virtual void release() = 0;
  /// Ends, when all steps are released. Throws the first error.
  virtual void finish() = 0;
  /// Called after an error here: processes that share the work with this one then stop, too.
  virtual void stop() noexcept = 0;

  std::int64_t slots = 1;  ///< the most steps that are multiplied at a time
  std::int64_t ahead = 1;
  std::array<std::int64_t, 2> got{};  ///< elements that this process got
};

/// An array, and the number of its panels that are held at a time.
struct OfOperand {
  PanelArray array;
  int slots;
  std::size_t largest_bytes;  ///< of a panel
};

/// Panels in memory of this process; see `steps_held` for a right operand without slots. `counter` deals out
/// units of work; null: this process does all.
[[nodiscard]] std::unique_ptr<Operands> own_panels(std::array<OfOperand, 2> sides, Counter* counter);

/// The panels in slots. A new panel takes the slot that was least recently used.
class Held {
 public:
  explicit Held(int slots);
  [[nodiscard]] bool has(const Panel& panel) const { return places_.contains(panel); }
  /// The slots that two panels would take from others, taken one after the other.
  [[nodiscard]] std::vector<int> taken_by(const Panel& first, const Panel& second) const;
  /// The slot of a panel, and whether the panel must be fetched into it.
  std::pair<int, bool> take(const Panel& panel);

 private:
  std::vector<int> free_;
  std::list<std::pair<Panel, int>> used_;  ///< the least recently used one comes first
  std::map<Panel, std::list<std::pair<Panel, int>>::iterator> places_;
};

/// Whether the left and the right panel of each step are fetched, where one process carries out these steps.
/// Throws Error(EINVAL) if the slots cannot hold the panels of one step.
[[nodiscard]] OUTCORE_SIBLING std::vector<std::array<bool, 2>> fetched(std::span<const Step> steps,
                                                                       const std::array<int, 2>& slots);

/// Memory of a panel, allocated at its first use.
class PanelMemory {
 public:
  std::byte* get(std::size_t size_bytes);

 private:
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace outcore::tensor
