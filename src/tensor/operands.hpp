// The panels of both operands of a product, ahead of their use.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "outcore/world.hpp"
#include "tensor/panels.hpp"

namespace outcore::tensor {

/// One product of panels, by number: result[batch, rows, columns] gets left[batch, rows, inner] right[batch,
/// inner, columns]. inner -1: the result is zero.
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

/// Steps whose panels are held at a time, whatever they are, with so many slots. No slots for the right
/// operand: those of the left one have the panels of both sides.
[[nodiscard]] inline std::int64_t steps_held(const std::array<int, 2>& slots) {
  return slots[1] == 0 ? slots[0] / 2 : std::min(slots[0], slots[1]);
}

/// Who asks for steps: first it begins them, then it waits for them, then it releases them, in one order.
class Operands {
 public:
  using Pair = std::array<Matrices, 2>;
  using Stopped = std::function<bool()>;

  Operands() = default;
  virtual ~Operands() = default;  ///< nothing is under way afterwards
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  /// The number of a piece of work that nobody else gets; `count` or more: there is none left.
  [[nodiscard]] virtual std::int64_t next_unit(std::int64_t count, const Stopped& stopped) = 0;
  /// Asks for the panels of a step. There may be `ahead` steps that were begun and not released.
  virtual void begin(const Step& step) = 0;
  /// The panels of a step will be asked for soon.
  virtual void hint(const Step& step) = 0;
  /// The panels of a step; none if all have to stop. Throws what a transfer has failed with.
  [[nodiscard]] virtual std::optional<Pair> wait(const Stopped& stopped) = 0;
  /// The panels of a step are not used any more.
  virtual void release() = 0;
  /// All steps are released. Throws what has failed.
  virtual void finish() = 0;
  /// Something has failed here: others that make results together with this process stop.
  virtual void stop() noexcept = 0;

  std::int64_t slots = 1;  ///< steps that are multiplied at a time, at most
  std::int64_t ahead = 1;
  std::array<std::int64_t, 2> got{};  ///< elements, by this process
};

/// An array, and how many panels of it are held at a time.
struct OfOperand {
  PanelArray array;
  int slots;
  std::size_t largest_bytes;  ///< of a panel
};

/// Panels in memory of this process; see `steps_held` for a right operand without slots. Pieces of work are
/// dealt out by `counter`; null: all are done here.
[[nodiscard]] std::unique_ptr<Operands> own_panels(std::array<OfOperand, 2> sides, Counter* counter);

/// Which panels are in which slot. A slot that was not used for longest is taken for a new panel.
class Held {
 public:
  explicit Held(int slots);
  [[nodiscard]] bool has(const Panel& panel) const { return places_.contains(panel); }
  /// The slot of a panel, and whether it has to be fetched into it.
  std::pair<int, bool> take(const Panel& panel);

 private:
  std::vector<int> free_;
  std::list<std::pair<Panel, int>> used_;  ///< the one that was not used for longest first
  std::map<Panel, std::list<std::pair<Panel, int>>::iterator> places_;
};

/// Memory of a panel, made when it is used first.
class PanelMemory {
 public:
  std::byte* get(std::size_t size_bytes);

 private:
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace outcore::tensor
