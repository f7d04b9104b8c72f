#include "tensor/operands.hpp"

#include <algorithm>
#include <deque>

namespace outcore::tensor {

Held::Held(int slots) {
  for (int slot = 0; slot < slots; ++slot) free_.push_back(slot);
}

std::pair<int, bool> Held::take(const Panel& panel) {
  if (const auto found = places_.find(panel); found != places_.end()) {
    used_.splice(used_.end(), used_, found->second);
    return {found->second->second, false};
  }
  int slot = 0;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else {
    slot = used_.front().second;
    places_.erase(used_.front().first);
    used_.pop_front();
  }
  used_.emplace_back(panel, slot);
  places_[panel] = std::prev(used_.end());
  return {slot, true};
}

namespace {

constexpr int nothing = -1;  // in place of a slot: the step has no panels

class OwnPanel {
 public:
  explicit OwnPanel(OfOperand side)
      : array_(std::move(side.array)),
        held_(side.slots),
        slots_(static_cast<std::size_t>(side.slots)),
        largest_bytes_(side.largest_bytes) {}
  ~OwnPanel() {
    for (Slot& slot : slots_) wait_quietly(slot.waits);
  }
  OwnPanel(const OwnPanel&) = delete;
  OwnPanel& operator=(const OwnPanel&) = delete;

  /// Asks for a panel, if it is not here; its slot. Adds its elements to `got`.
  int begin(const Panel& panel, std::int64_t& got) {
    const auto [number, missing] = held_.take(panel);
    Slot& slot = slots_[static_cast<std::size_t>(number)];
    if (missing) {
      got += array_.elements(panel);
      slot.matrices = array_.get(panel, [&] { return slot.buffer.get(largest_bytes_); }, slot.waits);
    }
    return number;
  }
  void hint(const Panel& panel) {
    if (held_.has(panel) || (hinted_ && *hinted_ == panel)) return;
    array_.prefetch(panel);
    hinted_ = panel;
  }
  /// The panel in a slot, when it is here.
  const Matrices& wait(int number) {
    Slot& slot = slots_[static_cast<std::size_t>(number)];
    wait_for(slot.waits);
    return slot.matrices;
  }

 private:
  struct Slot {
    PanelMemory buffer;
    Matrices matrices;
    Waits waits;
  };
  PanelArray array_;
  Held held_;
  std::vector<Slot> slots_;
  std::size_t largest_bytes_;
  std::optional<Panel> hinted_;  ///< last
};

class OwnPanels : public Operands {
 public:
  OwnPanels(std::array<OfOperand, 2> sides, Counter* counter)
      : counter_(counter), left_(std::move(sides[0])), right_(std::move(sides[1])) {
    slots = ahead = std::min(sides[0].slots, sides[1].slots);
  }

  std::int64_t next_unit(std::int64_t, const Stopped&) override {
    return counter_ ? counter_->next() : next_unit_++;
  }
  void begin(const Step& step) override {
    if (step.inner < 0) return asked_.push_back({nothing, nothing});
    const int left = left_.begin(wanted(step, 0), got[0]);
    asked_.push_back({left, right_.begin(wanted(step, 1), got[1])});
  }
  void hint(const Step& step) override {
    if (step.inner < 0) return;
    left_.hint(wanted(step, 0));
    right_.hint(wanted(step, 1));
  }
  std::optional<Pair> wait(const Stopped&) override {
    const auto [left, right] = asked_.front();
    asked_.pop_front();
    if (left == nothing) return Pair{};
    const Matrices& found = left_.wait(left);
    return Pair{found, right_.wait(right)};
  }
  void release() override {}
  void finish() override {}
  void stop() noexcept override {}

 private:
  Counter* counter_;
  std::int64_t next_unit_ = 0;
  OwnPanel left_, right_;
  std::deque<std::array<int, 2>> asked_;  ///< slots of steps that were not waited for
};

}  // namespace

std::unique_ptr<Operands> own_panels(std::array<OfOperand, 2> sides, Counter* counter) {
  return std::make_unique<OwnPanels>(std::move(sides), counter);
}

}  // namespace outcore::tensor
