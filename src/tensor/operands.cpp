#include "tensor/operands.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <deque>

#include "outcore/error.hpp"

namespace outcore::tensor {

std::int64_t steps_together(std::span<const Step> steps, const std::array<int, 2>& slots, std::int64_t most) {
  const bool one = slots[1] == 0;
  std::array<std::map<Panel, int>, 2> users;  // how often the steps from `begin` to `end` use each panel
  const auto count = [&](const Step& step, int times) {
    for (int side = 0; step.inner >= 0 && side < 2; ++side) {
      const auto [operand, panel, turned] = wanted(step, side, one);
      if ((users[operand][panel] += times) == 0) users[operand].erase(panel);
    }
  };
  const auto fit = [&] {
    return std::ssize(users[0]) <= slots[0] && (one || std::ssize(users[1]) <= slots[1]);
  };
  const std::int64_t all = std::ssize(steps), first = std::min(most, all);
  std::int64_t end = 0, sum = 0;
  for (std::int64_t begin = 0; begin < first; ++begin) {
    for (; end < all && end - begin < most; ++end) {
      count(steps[static_cast<std::size_t>(end)], 1);
      if (fit()) continue;
      count(steps[static_cast<std::size_t>(end)], -1);
      break;
    }
    sum += end < all ? end - begin : most;  // after the end the next task goes on
    count(steps[static_cast<std::size_t>(begin)], -1);
  }
  return std::max<std::int64_t>(1, sum / std::max<std::int64_t>(1, first));
}

std::byte* PanelMemory::get(std::size_t size_bytes) {
  if (!memory_) {
    memory_ = std::make_unique_for_overwrite<std::byte[]>(size_bytes);
    constexpr std::uintptr_t page_bytes = 4096, large_bytes = 4 << 20;  // two huge pages
    const auto place = reinterpret_cast<std::uintptr_t>(memory_.get());
    const std::uintptr_t begin = (place + page_bytes - 1) & ~(page_bytes - 1), end = place + size_bytes;
    if (begin + large_bytes < end)  // only a hint; all of it will be used
      madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
  return memory_.get();
}

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

std::vector<int> Held::taken_by(const Panel& first, const Panel& second) const {
  std::vector<int> slots;
  auto oldest = used_.begin();
  std::size_t free = free_.size();
  const auto take = [&] {
    if (free > 0)
      --free;
    else
      slots.push_back((oldest++)->second);
  };
  if (!has(first)) take();
  if (second == first) return slots;
  const auto found = places_.find(second);
  if (found != places_.end() && std::find(slots.begin(), slots.end(), found->second->second) == slots.end())
    return slots;
  if (oldest != used_.end() && oldest->first == first) ++oldest;  // it was used just now
  take();
  return slots;
}

std::vector<std::array<bool, 2>> fetched(std::span<const Step> steps, const std::array<int, 2>& slots) {
  const bool one = slots[1] == 0;
  if (slots[0] < (one ? 2 : 1) || slots[1] < 0)
    throw Error(EINVAL, {.attempted = "count panels", .detail = "there is no room for those of a step"});
  std::array<Held, 2> held{Held(slots[0]), Held(slots[1])};
  std::vector<std::array<bool, 2>> found(steps.size());
  for (std::size_t number = 0; number < steps.size(); ++number)
    for (int side = 0; steps[number].inner >= 0 && side < 2; ++side) {
      const auto [operand, panel, turned] = wanted(steps[number], side, one);
      found[number][static_cast<std::size_t>(side)] = held[operand].take(panel).second;
    }
  return found;
}

namespace {

constexpr std::int64_t most_ahead = 64;  // steps that are begun before others are done
constexpr int nothing = -1;              // in place of a slot if the step has no panels

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

  /// Whether the panels would take only slots that no step beyond `done` uses.
  [[nodiscard]] bool may_begin(const Panel& first, const Panel& second, std::int64_t done) const {
    const std::vector<int> slots = held_.taken_by(first, second);
    return std::all_of(slots.begin(), slots.end(), [&](int number) {
      return slots_[static_cast<std::size_t>(number)].last_used <= done;
    });
  }
  /// Asks for a panel of a step if it is not here, adds its elements to `got`, and returns its slot.
  int begin(const Panel& panel, std::int64_t step, std::int64_t& got) {
    const auto [number, missing] = held_.take(panel);
    Slot& slot = slots_[static_cast<std::size_t>(number)];
    slot.last_used = step;
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
  /// Waits for the panel in a slot.
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
    std::int64_t last_used = 0;  ///< by that step, from 1
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
      : counter_(counter),
        one_(sides[1].slots == 0),
        operands_{OwnPanel(std::move(sides[0])), OwnPanel(std::move(sides[1]))} {
    slots = ahead = most_ahead;
  }

  std::int64_t next_unit(std::int64_t, const Stopped&) override {
    return counter_ ? counter_->next() : next_unit_++;
  }
  bool may_begin(const Step& step) const override {
    if (step.inner < 0) return true;
    const auto left = wanted(step, 0, one_).panel, right = wanted(step, 1, one_).panel;
    if (one_) return operands_[0].may_begin(left, right, released_);
    return operands_[0].may_begin(left, left, released_) && operands_[1].may_begin(right, right, released_);
  }
  void begin(const Step& step) override {
    ++begun_;
    auto& asked = asked_.emplace_back(std::array{nothing, nothing});
    for (int side = 0; step.inner >= 0 && side < 2; ++side) {
      const auto [operand, panel, turned] = wanted(step, side, one_);
      asked[static_cast<std::size_t>(side)] = operands_[operand].begin(panel, begun_, got[operand]);
    }
  }
  void hint(const Step& step) override {
    if (step.inner < 0) return;
    for (int side = 0; side < 2; ++side) {
      const auto [operand, panel, turned] = wanted(step, side, one_);
      operands_[operand].hint(panel);
    }
  }
  std::optional<Pair> wait(const Stopped&) override {
    const auto [left, right] = asked_.front();
    asked_.pop_front();
    if (left == nothing) return Pair{};
    const Matrices& found = operands_[0].wait(left);
    return Pair{found, one_ ? operands_[0].wait(right).turned() : operands_[1].wait(right)};
  }
  void release() override { ++released_; }
  void finish() override {}
  void stop() noexcept override {}

 private:
  Counter* counter_;
  std::int64_t next_unit_ = 0;
  std::int64_t begun_ = 0, released_ = 0;  ///< steps
  bool one_;                               ///< the panels of the left operand serve on both sides
  std::array<OwnPanel, 2> operands_;
  std::deque<std::array<int, 2>> asked_;  ///< slots of the steps that were not waited for
};

}  // namespace

std::unique_ptr<Operands> own_panels(std::array<OfOperand, 2> sides, Counter* counter) {
  return std::make_unique<OwnPanels>(std::move(sides), counter);
}

}  // namespace outcore::tensor
