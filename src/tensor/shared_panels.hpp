// Panels in memory that the processes of a node share, so that a node reads each panel once.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>

#include "base/sibling.hpp"
#include "outcore/node_array.hpp"
#include "tensor/operands.hpp"

namespace outcore::tensor {

/// The memory that the processes of a node share for a product: slots of panels, and signals. The signals
/// are, in this order: whether a process has failed; for each process, the number of steps that it has done;
/// for each slot of each side, the number of its panel; for each turn, the unit of work that the node gets,
/// from 1.
class OUTCORE_SIBLING NodePanels {
 public:
  /// largest_bytes: of a panel of each side; units: the most units of work. Collective. Throws the same error
  /// at all, Error(ENOMEM) say.
  NodePanels(World& world, std::array<int, 2> slots, std::array<std::int64_t, 2> largest_bytes,
             std::int64_t units);

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] const std::array<int, 2>& slots() const noexcept { return slots_; }
  [[nodiscard]] const std::array<std::int64_t, 2>& largest_bytes() const noexcept { return largest_bytes_; }
  [[nodiscard]] std::byte* slot(int side, int number) const;
  [[nodiscard]] NodeArray& signals() noexcept { return *signals_; }
  /// Tells the others that this process has failed: none waits for its panels any more. Any thread.
  void fail() noexcept;

  [[nodiscard]] static std::int64_t failed() noexcept { return 0; }
  [[nodiscard]] static std::int64_t done(int process) noexcept { return 1 + process; }
  [[nodiscard]] std::int64_t in_slot(int side, int number) const noexcept {
    return 1 + size_ + side * slots_[0] + number;
  }
  [[nodiscard]] std::int64_t dealt(std::int64_t turn) const noexcept {
    return 1 + size_ + slots_[0] + slots_[1] + turn;
  }

 private:
  int rank_, size_;
  std::array<int, 2> slots_;
  std::array<std::int64_t, 2> largest_bytes_;
  std::unique_ptr<NodeArray> memory_, signals_;
};

/// The operands of a process that goes through the same steps as the others of its node, each with its share
/// of the result. The process that has fetched the least so far fetches a panel. A thread waits for these
/// fetches, and for free slots, so a process that has its panels goes on, wherever the others are. `counter`
/// deals out units of work to nodes; null: this node does all.
[[nodiscard]] std::unique_ptr<Operands> shared_panels(std::array<PanelArray, 2> sides, NodePanels& memory,
                                                      Counter* counter);

}  // namespace outcore::tensor
