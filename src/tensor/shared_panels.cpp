#include "tensor/shared_panels.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/start_thread.hpp"
#include "outcore/error.hpp"

namespace outcore::tensor {
namespace {

constexpr std::int64_t aligned = 4096;  // alignment of panels, in bytes
constexpr auto between_looks = std::chrono::milliseconds(50);
constexpr auto at_once = std::chrono::microseconds(0);
constexpr int beyond = 1;  // how many more steps are asked for than slots can hold

std::int64_t with_padding(std::int64_t bytes) {
  return (bytes + aligned - 1) / aligned * aligned;
}

}  // namespace

NodePanels::NodePanels(World& world, std::array<int, 2> slots, std::array<std::int64_t, 2> largest_bytes,
                       std::int64_t units)
    : rank_(world.node_rank()), size_(world.node_size()), slots_(slots), largest_bytes_(largest_bytes) {
  std::int64_t bytes = 0;
  for (std::size_t side = 0; side < 2; ++side) bytes += slots_[side] * with_padding(largest_bytes_[side]);
  std::optional<Error> error;
  try {
    memory_ =
        std::make_unique<NodeArray>(world, Extents{std::max<std::int64_t>(1, bytes)}, ElementType::uint8);
    signals_ = std::make_unique<NodeArray>(world, Extents{dealt(units + 1)}, ElementType::int32);
  } catch (const Error& caught) {  // the same at all processes of this node
    error = caught;
  }
  world.together("panels that processes share", 0, [&] {
    if (error) throw *error;
  });
}

void NodePanels::fail() noexcept {
  try {
    signals_->post(failed(), 1);
  } catch (...) {  // nobody waits for memory that is gone
  }
}

std::byte* NodePanels::slot(int side, int number) const {
  const std::int64_t before = side == 0 ? 0 : slots_[0] * with_padding(largest_bytes_[0]);
  const std::int64_t each = with_padding(largest_bytes_[static_cast<std::size_t>(side)]);
  return memory_->view().data + before + number * each;
}

namespace {

class SharedPanels : public Operands {
 public:
  SharedPanels(std::array<PanelArray, 2> sides, NodePanels& memory, Counter* counter)
      : sides_(std::move(sides)),
        memory_(memory),
        counter_(counter),
        one_(memory.slots()[1] == 0),
        held_{Held(memory.slots()[0]), Held(memory.slots()[1])},
        filled_(static_cast<std::size_t>(memory.size())) {
    for (std::size_t side = 0; side < 2; ++side)
      slots_[side].resize(static_cast<std::size_t>(memory.slots()[side]));
    slots = steps_held(memory.slots());
    ahead = (one_ ? slots : std::max(memory.slots()[0], memory.slots()[1])) + beyond;
    try {
      thread_ = start_thread("outcore-panels", [this] { fill(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~SharedPanels() override { close(); }

  std::int64_t next_unit(std::int64_t count, const Stopped& stopped) override {
    if (!counter_) return turn_++;
    const std::int64_t place = memory_.dealt(turn_);
    if (memory_.rank() == 0) {
      const std::int64_t unit = std::min(counter_->next(), count);
      post(place, unit + 1);
      ++turn_;
      return unit;
    }
    while (!has(place, 1, between_looks))
      if (stopped() || has_failed()) return count;
    ++turn_;
    return static_cast<std::int64_t>(
               memory_.signals().view<std::int32_t>()[static_cast<std::size_t>(place)]) -
           1;
  }

  bool may_begin(const Step& /*step*/) const override { return true; }
  void begin(const Step& step) override {
    ++begun_;
    auto& asked = asked_.emplace_back();
    if (step.inner < 0) return;
    asked.emplace();
    for (int side = 0; side < 2; ++side) {
      const auto [which, panel, turned] = wanted(step, side, one_);
      const auto [number, missing] = held_[which].take(panel);
      Slot& slot = slots_[which][static_cast<std::size_t>(number)];
      if (missing) {
        slot.panel = ++fetched_[which];
        const std::int64_t elements = sides_[which].elements(panel);
        const auto filler = std::min_element(filled_.begin(), filled_.end());
        *filler += elements;
        if (filler - filled_.begin() == memory_.rank()) {
          give({static_cast<int>(which), number, panel, slot.panel, slot.last_used});
          got[which] += elements;
        }
      }
      slot.last_used = begun_;
      const auto operand = static_cast<int>(which);
      const Matrices matrices = sides_[which].matrices(memory_.slot(operand, number), panel);
      (*asked)[static_cast<std::size_t>(side)] = {turned ? matrices.turned() : matrices,
                                                  memory_.in_slot(operand, number), slot.panel};
    }
  }

  /// The processes of the node take turns to ask the counter.
  void hint(const Step& step) override {
    if (step.inner < 0) return;
    for (int side = 0; side < 2; ++side) {
      const auto [which, panel, turned] = wanted(step, side, one_);
      if (held_[which].has(panel) || (hinted_[which] && *hinted_[which] == panel)) continue;
      hinted_[which] = panel;
      if (++hints_[which] % memory_.size() == memory_.rank()) sides_[which].prefetch(panel);
    }
  }

  std::optional<Pair> wait(const Stopped& stopped) override {
    const auto asked = std::move(asked_.front());
    asked_.pop_front();
    Pair found{};
    for (std::size_t side = 0; asked && side < 2; ++side) {
      const Asked& each = (*asked)[side];
      while (!has(each.signal, each.panel, between_looks))
        if (stopped() || has_failed()) {
          throw_error();
          return std::nullopt;
        }
      found[side] = each.matrices;
    }
    return found;
  }

  void release() override { post(NodePanels::done(memory_.rank()), ++released_); }
  void finish() override {
    close();
    throw_error();
  }
  void stop() noexcept override { memory_.fail(); }

 private:
  struct Slot {
    std::int64_t panel = 0;      ///< number of the panel, from 1
    std::int64_t last_used = 0;  ///< number of steps done by the end of its last use
  };
  struct Asked {
    Matrices matrices;
    std::int64_t signal, panel;
  };
  /// `after`: number of steps that all processes must have done before the slot, which had another panel, is
  /// free.
  struct Fetch {
    int side, slot;
    Panel panel;
    std::int64_t number, after;
  };
  struct UnderWay {
    Fetch fetch;
    Waits waits;
  };

  [[nodiscard]] bool has(std::int64_t signal, std::int64_t least, std::chrono::microseconds timeout) {
    return memory_.signals().wait_for(signal, static_cast<std::int32_t>(least), timeout);
  }
  void post(std::int64_t signal, std::int64_t value) {
    memory_.signals().post(signal, static_cast<std::int32_t>(value));
  }
  [[nodiscard]] bool has_failed() { return has(NodePanels::failed(), 1, at_once); }
  void throw_error() {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }
  void give(const Fetch& fetch) {
    {
      const std::lock_guard lock(mutex_);
      to_fetch_.push_back(fetch);
    }
    changed_.notify_one();
  }
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  // ---- the thread that fills slots ----

  void fill() noexcept {
    std::deque<UnderWay> under_way;
    try {
      while (const auto fetch = next(under_way)) {
        while (!is_free(*fetch, under_way.empty())) {
          if (under_way.empty()) return;  // all processes stop
          arrived(under_way);
        }
        UnderWay& begun = under_way.emplace_back(UnderWay{*fetch, {}});
        std::byte* const buffer = memory_.slot(fetch->side, fetch->slot);
        (void)sides_[static_cast<std::size_t>(fetch->side)].get(
            fetch->panel, [&] { return buffer; }, begun.waits, false);
      }
      while (!under_way.empty()) arrived(under_way);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      stop();
    }
    for (UnderWay& each : under_way) wait_quietly(each.waits);
  }

  /// Waits for the next panel to fetch, while those under way arrive; none when this object is closed.
  std::optional<Fetch> next(std::deque<UnderWay>& under_way) {
    std::unique_lock lock(mutex_);
    while (to_fetch_.empty() && !closed_) {
      if (under_way.empty()) {
        changed_.wait(lock);
        continue;
      }
      lock.unlock();
      arrived(under_way);
      lock.lock();
    }
    if (closed_) return std::nullopt;
    const Fetch first = to_fetch_.front();
    to_fetch_.pop_front();
    return first;
  }

  /// Whether no process uses the old panel of a slot any more. With `waits`, waits for it; false then means
  /// that all processes stop.
  bool is_free(const Fetch& fetch, bool waits) {
    for (int process = 0; process < memory_.size(); ++process)
      while (!has(NodePanels::done(process), fetch.after, waits ? between_looks : at_once))
        if (!waits || has_failed() || is_closed()) return false;
    return true;
  }
  bool is_closed() {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  /// Waits for the earliest fetch under way, and announces its panel.
  void arrived(std::deque<UnderWay>& under_way) {
    UnderWay& first = under_way.front();
    wait_for(first.waits);
    post(memory_.in_slot(first.fetch.side, first.fetch.slot), first.fetch.number);
    under_way.pop_front();
  }

  std::array<PanelArray, 2> sides_;
  NodePanels& memory_;
  Counter* counter_;
  bool one_;  ///< the panels of the left operand serve on both sides
  std::array<Held, 2> held_;
  std::array<std::vector<Slot>, 2> slots_;
  std::array<std::int64_t, 2> fetched_{}, hints_{};
  std::array<std::optional<Panel>, 2> hinted_;
  std::vector<std::int64_t> filled_;  ///< elements that each process has fetched
  std::int64_t begun_ = 0, released_ = 0, turn_ = 0;
  std::deque<std::optional<std::array<Asked, 2>>> asked_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Fetch> to_fetch_;
  std::exception_ptr error_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Operands> shared_panels(std::array<PanelArray, 2> sides, NodePanels& memory,
                                        Counter* counter) {
  return std::make_unique<SharedPanels>(std::move(sides), memory, counter);
}

}  // namespace outcore::tensor
