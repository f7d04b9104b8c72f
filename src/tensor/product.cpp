#include "tensor/product.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "outcore/error.hpp"
#include "tensor/crew.hpp"

namespace outcore::tensor {
namespace {

constexpr std::int64_t stop = std::int64_t{1} << 48;  // far beyond any number of tasks
constexpr int parts_of_thread = 4;                    // number of parts of a large step
constexpr double large =
    1e9;  // operations of a step; a part then takes a thousand times as long as giving it to a thread
constexpr double small = 1e7;  // operations of a product that takes less time than the start of threads
constexpr auto between_looks = std::chrono::milliseconds(20);

// ---- results ----

/// The buffers of results, used in turn. A result is put while the next one is made in another buffer; with
/// one buffer only, the next result waits for the put.
class Results {
 public:
  Results(PanelArray array, const Execution& how, bool half, std::size_t largest_bytes)
      : array_(std::move(array)),
        how_(how),
        half_(half),
        largest_bytes_(largest_bytes),
        buffers_(static_cast<std::size_t>(how.results)) {}
  ~Results() {
    for (Waits& waits : under_way_) wait_quietly(waits);
  }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  /// Whether the buffer of the next result has a result that was not put yet.
  [[nodiscard]] bool is_full() const { return begun_ - put_ >= count(); }
  /// Waits until the buffer of the next result is free, and returns its matrices.
  Matrices begin(const Panel& panel, const Share* share) {
    while (put_ - std::ssize(under_way_) <= begun_ - count()) complete();
    PanelMemory& buffer = buffers_[static_cast<std::size_t>(begun_++ % count())];
    return array_.matrices(buffer.get(largest_bytes_), panel, share);
  }
  /// Begins to put the earliest result that was not put.
  void put(const Panel& panel, const Matrices& matrices, const Share* share) {
    if (how_.one_put) finish();
    under_way_.emplace_back();
    ++put_;
    moved += array_.put(panel, matrices, how_.add, under_way_.back(), share);
    put_mirrored(panel, matrices, share, under_way_.back());
  }
  /// A result in place, if it lies in memory of this process. It is made there, except where its old elements
  /// would also be added to its mirror image.
  [[nodiscard]] std::optional<Matrices> lying_there(const Panel& panel) {
    return half_ && how_.add ? std::nullopt : array_.lying_there(panel);
  }
  /// Counts a result that was made in place.
  void count(const Panel& panel, const Matrices& matrices) {
    moved += array_.elements(panel);
    Waits waits;
    put_mirrored(panel, matrices, nullptr, waits);
    wait_for(waits);
  }
  /// Waits until all puts are complete.
  void finish() {
    while (!under_way_.empty()) complete();
  }

  std::int64_t moved = 0;  ///< elements

 private:
  [[nodiscard]] std::int64_t count() const { return std::ssize(buffers_); }
  void put_mirrored(const Panel& panel, const Matrices& matrices, const Share* share, Waits& waits) {
    const auto [batch, rows, columns] = panel;
    if (!half_ || rows == columns) return;
    if (how_.one_put) wait_for(waits);  // its mirror image is copied, too
    std::optional<Share> its_share;
    if (share) its_share = Share{share->group == 0 ? 0 : 3 - share->group, share->begin, share->end};
    moved += array_.put({batch, columns, rows}, matrices.turned(), how_.add, waits,
                        its_share ? &*its_share : nullptr);
  }
  void complete() {
    wait_for(under_way_.front());
    under_way_.pop_front();
  }

  PanelArray array_;
  const Execution& how_;
  bool half_;
  std::size_t largest_bytes_;
  std::vector<PanelMemory> buffers_;
  std::int64_t begun_ = 0, put_ = 0;
  std::deque<Waits> under_way_;  ///< of the results that were put last
};

// ---- the loop ----

/// Throws Error(EINVAL) if nobody can carry out the steps, or if there is not enough memory for the panels
/// that they need at a time.
void check(const Steps& steps, const Execution& how) {
  const auto refuse = [](std::string why) {
    throw Error(EINVAL, {.attempted = "carry out a product", .detail = std::move(why)});
  };
  if (how.slots[0] < 1 || how.slots[1] < 0) refuse("there is no room for a panel of an operand");
  if (how.unit < 1)
    refuse("units of " + std::to_string(how.unit) + " tasks are dealt out, and one is the least");
  if (how.threads < 1) refuse("there are " + std::to_string(how.threads) + " threads, and one is the least");
  if (how.slots[1] == 0 && !(steps.half && how.slots[0] > 1))
    refuse("panels serve on both sides, but no half of a result is made, or there is room for one panel");
  for (std::int64_t task = 0; task < steps.tasks(); ++task) {
    const auto turns = steps.turns(task);
    const auto made = std::count_if(turns.begin(), turns.end(), [](const auto& turn) { return turn.begins; });
    if (made > how.results)
      refuse("task " + std::to_string(task) + " makes " + std::to_string(made) +
             " panels of the result at a time, and there is memory for " + std::to_string(how.results));
  }
}

class Loop {
 public:
  Loop(const Steps& steps, const Execution& how, const Arrays& arrays, const Multiply& multiply,
       Counter* counter, const Watch& watch, const Sharing& sharing)
      : steps_(steps),
        how_(how),
        multiply_(multiply),
        watch_(watch),
        sharing_(sharing),
        operands_(operands_of(arrays, counter)),
        results_(PanelArray(steps.groups, steps.sides[2], arrays.out, how.element_bytes), how, steps.half,
                 largest_result()),
        hinted_(how.hinted >= steps_held(how.slots) ? how.hinted : 0),
        crew_(operations() <= small ? 0 : how.threads) {
    for (const std::int64_t each : steps.groups[3].panels) most_inner_ = std::max(most_inner_, each);
  }

  Moved run() {
    if (!make()) operands_->stop();
    operands_->finish();
    results_.finish();
    return {operands_->got, results_.moved, flops_};
  }

 private:
  /// A step whose panels were asked for.
  struct Ahead {
    Step step;
    std::int64_t task;
    double done;  ///< the fraction of its task that is done after this step
    Steps::Turn turn;
    std::int64_t pieces;  ///< into which the step is divided, if it is not large
  };
  /// A result, or a share of one, in its buffer.
  struct Made {
    Panel panel{};
    Matrices matrices;
    std::optional<Share> share;
    bool is_there = false;       ///< made in place, not in a buffer
    std::size_t first_part = 0;  ///< the number of its first part; other results have other numbers

    [[nodiscard]] const Share* its_share() const { return share ? &*share : nullptr; }
  };
  struct Given {
    Ahead item;
    Made made;
  };

  [[nodiscard]] std::unique_ptr<Operands> operands_of(const Arrays& arrays, Counter* counter) const {
    PanelArray left(steps_.groups, steps_.sides[0], arrays.left, how_.element_bytes);
    PanelArray right(steps_.groups, steps_.sides[1], arrays.right, how_.element_bytes);
    if (!sharing_.memory)
      return own_panels({OfOperand{left, how_.slots[0], largest({0, 1, 3})},
                         OfOperand{right, how_.slots[1], largest({0, 3, 2})}},
                        counter);
    sharing_.shares.check(steps_.groups, sharing_.memory->size());
    if (sharing_.memory->slots() != how_.slots ||
        sharing_.memory->largest_bytes()[0] < static_cast<std::int64_t>(largest({0, 1, 3})) ||
        sharing_.memory->largest_bytes()[1] < static_cast<std::int64_t>(largest({0, 3, 2})))
      throw Error(EINVAL, {.attempted = "share panels", .detail = "their memory was made for other panels"});
    return shared_panels({left, right}, *sharing_.memory, counter);
  }

  [[nodiscard]] std::int64_t longest(int group) const {
    const auto& panels = steps_.groups[static_cast<std::size_t>(group)].panels;
    return panels.empty() ? 0 : *std::max_element(panels.begin(), panels.end());
  }
  [[nodiscard]] std::size_t largest(const std::array<int, 3>& groups) const {
    std::int64_t elements = 1;
    for (const int group : groups) elements *= longest(group);
    return static_cast<std::size_t>(elements) * how_.element_bytes;
  }
  [[nodiscard]] std::size_t largest_result() const {
    std::int64_t elements = 1;
    for (const int group : {0, 1, 2})
      elements *=
          sharing_.memory && sharing_.shares.group == group ? sharing_.shares.largest() : longest(group);
    return static_cast<std::size_t>(elements) * how_.element_bytes;
  }

  [[nodiscard]] double operations() const {
    double product = 2;
    for (const Group& group : steps_.groups) {
      double elements = 0;
      for (const std::int64_t each : group.panels) elements += static_cast<double>(each);
      product *= elements;
    }
    return product;
  }

  // ---- the steps of this process ----

  /// Finds the next step; false at the end. Its task is in `task_`.
  bool next(Ahead& item) {
    if (has_ended_) return false;
    while (place_ == end_) {
      if (place_ < unit_end_) {
        begin_task(task_ + 1);
        continue;
      }
      const std::int64_t units = (steps_.tasks() + how_.unit - 1) / how_.unit;
      const std::int64_t unit = operands_->next_unit(units, [this] { return is_stopped(); });
      if (unit >= units) {
        has_ended_ = true;  // must not ask again: a node would wait for work that no process deals out
        return false;
      }
      const std::int64_t last = std::min((unit + 1) * how_.unit, steps_.tasks());
      unit_begin_ = steps_.begin_of(unit * how_.unit);
      unit_end_ = steps_.begin_of(last);
      begin_task(unit * how_.unit);
    }
    item.step = steps_.steps[static_cast<std::size_t>(place_)];
    item.task = task_;
    item.pieces = pieces_;
    const std::int64_t first = steps_.begin_of(task_);
    item.turn = turns_[static_cast<std::size_t>(place_ - first)];
    item.done = static_cast<double>(++place_ - first) / static_cast<double>(end_ - first);
    return true;
  }
  void begin_task(std::int64_t task) {
    task_ = task;
    place_ = steps_.begin_of(task);
    end_ = steps_.begin_of(task + 1);
    turns_ = steps_.turns(task);
    if (how_.threads == 1) return;
    // Steps of different results are multiplied beside one another. Where slots hold panels of enough of
    // them, each is one product, for one thread, and one more waits for a thread.
    const std::span its_steps =
        std::span(steps_.steps).subspan(static_cast<std::size_t>(place_), turns_.size());
    const std::int64_t results =
        std::count_if(turns_.begin(), turns_.end(), [](const auto& turn) { return turn.begins; });
    const std::int64_t together =
        results == 1 ? 1 : std::min(operands_->slots, steps_together(its_steps, how_.slots, results));
    const std::int64_t beside = std::max<std::int64_t>(1, together - 1);
    pieces_ = (how_.threads + beside - 1) / beside;
  }

  void hint() {
    if (hinted_ == 0) return;
    const std::int64_t place = place_ - 1;  // of the step whose panels were asked for last
    const std::int64_t first = place == unit_begin_ ? place + steps_held(how_.slots) : place + hinted_;
    for (std::int64_t i = first; i <= place + hinted_ && i < unit_end_; ++i)
      operands_->hint(steps_.steps[static_cast<std::size_t>(i)]);
  }

  /// Asks for the panels of further steps.
  void ask() {
    while (std::ssize(ahead_) + crew_.under_way() < operands_->ahead) {
      if (Ahead item{}; !coming_ && next(item)) coming_ = item;
      if (!coming_ || !operands_->may_begin(coming_->step)) return;
      operands_->begin(coming_->step);
      ahead_.push_back(*std::exchange(coming_, std::nullopt));
      hint();
    }
  }

  // ---- multiplication ----

  /// Makes all results; false if all processes must stop before.
  bool make() {
    std::map<Panel, Made> made;  // of the task that is worked on
    for (;;) {
      if (is_stopped()) return false;
      while (crew_.has_done()) wait();  // further panels may take their slots
      ask();
      if (ahead_.empty()) {
        put();
        if (crew_.under_way() == 0) return true;
        wait();
        continue;
      }
      while (crew_.under_way() >= operands_->slots) wait();
      const Ahead item = ahead_.front();
      const auto here = operands_->wait([this] { return is_stopped(); });
      if (!here) return false;
      const auto [batch, rows, columns, inner] = item.step;
      Made& its = made[{batch, rows, columns}];
      if (item.turn.begins) {
        its = {};
        its.panel = {batch, rows, columns};
        its.first_part = static_cast<std::size_t>(results_begun_++ % how_.results) *
                         static_cast<std::size_t>(how_.threads * parts_of_thread);
        if (sharing_.memory) its.share = sharing_.shares.of(sharing_.memory->rank(), its.panel);
        begin_result(its, inner < 0);
      }
      ahead_.pop_front();
      const auto [left, right] = of_share(*here, its.share);
      const bool adds = !item.turn.begins || (its.is_there && how_.add);
      crew_.give(inner < 0 ? zeros(its.matrices) : parts(item, {left, right}, its.matrices, adds),
                 its.first_part);
      given_.push_back({item, its});
      if (item.turn.ends) made.erase(its.panel);
      // Put while the next ones are made.
      const std::int64_t busy = std::max<std::int64_t>(1, how_.threads / item.pieces);
      while (crew_.under_way() > busy && given_.front().item.turn.ends) wait();
      put();
    }
  }

  void begin_result(Made& made, bool is_zero) {
    const auto there = made.share || is_zero ? std::nullopt : results_.lying_there(made.panel);
    made.is_there = there.has_value();
    if (there) {
      // An earlier task may still add to the same memory, by parts of other numbers.
      while (std::ranges::any_of(given_, [&](const Given& each) { return each.made.panel == made.panel; }))
        wait();
      made.matrices = *there;
      return;
    }
    while (results_.is_full()) {
      if (complete_.empty()) wait();
      put();
    }
    made.matrices = results_.begin(made.panel, made.its_share());
  }

  /// The parts of the panels of both operands that a share of the result needs.
  static Operands::Pair of_share(const Operands::Pair& panels, const std::optional<Share>& share) {
    auto [left, right] = panels;
    if (share && share->group != 2) left = left.part(share->group, share->begin, share->end);
    if (share && share->group != 1) right = right.part(share->group, share->begin, share->end);
    return {left, right};
  }

  /// Waits for the earliest step that the threads have, and ends the use of its panels.
  void wait() {
    crew_.wait();
    operands_->release();
    const Given& given = given_.front();
    const auto tasks = static_cast<double>(steps_.tasks());
    fraction_ = (static_cast<double>(given.item.task) + given.item.done) / tasks;
    done_ = given.item.task + (given.item.done == 1 ? 1 : 0);
    if (given.item.turn.ends) complete_.push_back(given.made);
    given_.pop_front();
  }
  /// Begins to put the results that are complete. That may be a copy: threads should have work, and panels
  /// come.
  void put() {
    if (!complete_.empty()) ask();
    for (; !complete_.empty(); complete_.pop_front()) {
      const Made& made = complete_.front();
      if (made.is_there)
        results_.count(made.panel, made.matrices);
      else
        results_.put(made.panel, made.matrices, made.its_share());
    }
  }

  /// Whether `watch` ends the work; asks it now and then.
  bool is_stopped() {
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ < between_looks) return false;
    looked_ = now;
    stopped_ = stopped_ || (watch_ && watch_(fraction_, done_));
    return stopped_;
  }

  std::vector<Crew::Work> zeros(const Matrices& out) const {
    std::vector<Crew::Work> result;
    result.emplace_back([out, bytes = how_.element_bytes] {
      std::fill_n(out.data, static_cast<std::size_t>(out.elements()) * bytes, std::byte{});
    });
    return result;
  }

  /// Divides a step into parts, the same parts of a result in all its steps.
  std::vector<Crew::Work> parts(const Ahead& item, const Operands::Pair& panels, const Matrices& out,
                                bool add) {
    const auto& [left, right] = panels;
    std::vector<Crew::Work> result;
    const auto [batch, rows, columns] = out.count;
    const double area = 2.0 * static_cast<double>(out.elements());
    flops_ += area * static_cast<double>(left.count[2]);
    // By the result alone, because steps may have different numbers of inner indices.
    const bool is_large = area * static_cast<double>(most_inner_) > large;
    const std::int64_t count =
        is_large ? how_.threads * (how_.threads > 1 ? parts_of_thread : 1) : item.pieces;
    const int axis = batch >= count || rows * columns < count ? 0 : rows >= columns ? 1 : 2;
    const std::int64_t all = out.count[static_cast<std::size_t>(axis)];
    const std::int64_t pieces = std::max<std::int64_t>(1, std::min(all, count));
    for (std::int64_t i = 0; i < pieces; ++i) {
      const std::int64_t first = all * i / pieces, last = all * (i + 1) / pieces;
      result.emplace_back([this, add, x = axis == 2 ? left : left.part(axis, first, last),
                           y = axis == 1 ? right : right.part(axis, first, last),
                           z = out.part(axis, first, last)] { multiply_(x, y, z, add); });
    }
    return result;
  }

  const Steps& steps_;
  const Execution& how_;
  const Multiply& multiply_;
  const Watch& watch_;
  const Sharing& sharing_;
  std::unique_ptr<Operands> operands_;
  Results results_;
  std::int64_t hinted_;
  std::int64_t task_ = 0, place_ = 0, end_ = 0, unit_begin_ = 0, unit_end_ = 0;
  std::vector<Steps::Turn> turns_;  ///< of the task whose panels are asked for
  bool has_ended_ = false;
  std::int64_t most_inner_ = 0, done_ = 0;
  std::int64_t pieces_ = 1;  ///< of the steps of the task that is asked for
  std::int64_t results_begun_ = 0;
  double flops_ = 0, fraction_ = 0;
  bool stopped_ = false;
  std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
  std::optional<Ahead> coming_;  ///< the next step, if its panels cannot be asked for yet
  std::deque<Ahead> ahead_;
  std::deque<Given> given_;
  std::deque<Made> complete_;  ///< results that were not put yet
  Crew crew_;                  // the last member: its threads end before the members that they use
};

}  // namespace

void Shares::check(const Groups& groups, int processes) const {
  const auto refuse = [](const char* why) {
    throw Error(EINVAL, {.attempted = "share panels", .detail = why});
  };
  if (group < 0 || group > 2) refuse("a result has no such group of axes");
  const Group& its = groups[static_cast<std::size_t>(group)];
  const auto& panels = its.panels;
  if (bounds.size() != panels.size()) refuse("the shares were made for other panels");
  for (std::size_t panel = 0; panel < panels.size(); ++panel) {
    const auto& each = bounds[panel];
    if (std::ssize(each) != processes + 1 || each.front() != 0 || each.back() != panels[panel] ||
        !std::is_sorted(each.begin(), each.end()))
      refuse("the shares of a panel do not cover it");
    std::int64_t place = 0;
    auto bound = each.begin();
    for (const std::int32_t cell : its.members[panel]) {
      const std::int64_t end = place + its.cells[static_cast<std::size_t>(cell)];
      const std::int64_t inner = its.divided(cell).second;
      for (; bound != each.end() && *bound < end; ++bound)
        if ((*bound - place) % inner != 0) refuse("a share ends within an axis that is not divided");
      place = end;
    }
  }
}

Share Shares::of(int process, const Panel& panel) const {
  const auto& its = bounds[static_cast<std::size_t>(panel[static_cast<std::size_t>(group)])];
  return {group, its[static_cast<std::size_t>(process)], its[static_cast<std::size_t>(process) + 1]};
}

std::int64_t Shares::largest() const {
  std::int64_t found = 0;
  for (const auto& each : bounds)
    for (std::size_t i = 1; i < each.size(); ++i) found = std::max(found, each[i] - each[i - 1]);
  return found;
}

std::vector<Steps::Turn> Steps::turns(std::int64_t task) const {
  const auto first = static_cast<std::size_t>(begin_of(task)),
             last = static_cast<std::size_t>(begin_of(task + 1));
  std::vector<Turn> found(last - first, Turn{false, false});
  std::map<Panel, std::size_t> latest;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Step& step = steps[first + i];
    const auto [place, is_first] = latest.insert_or_assign(Panel{step.batch, step.rows, step.columns}, i);
    found[i].begins = is_first;
  }
  for (const auto& [panel, place] : latest) found[place].ends = true;
  return found;
}

void Steps::check() const {
  const auto refuse = [](const char* why) {
    throw Error(EINVAL, {.attempted = "plan a product", .detail = why});
  };
  const auto has = [&](int group, std::int32_t panel) {
    return panel >= 0 && panel < std::ssize(groups[static_cast<std::size_t>(group)].members);
  };
  for (const Step& step : steps)
    if (!has(0, step.batch) || !has(1, step.rows) || !has(2, step.columns) ||
        !(step.inner == -1 || has(3, step.inner)))
      refuse("a step has a panel that is not there");
  std::int64_t before = 0;
  for (const std::int64_t each : task_ends) {
    if (each <= before) refuse("a task has no steps");
    before = each;
  }
  if (before != std::ssize(steps)) refuse("there are steps that belong to no task");
  for (std::int64_t task = 0; task < tasks(); ++task) {
    std::vector<Panel> begun, ended;
    const auto its_turns = turns(task);
    for (std::size_t i = 0; i < its_turns.size(); ++i) {
      const Step& step = steps[static_cast<std::size_t>(begin_of(task)) + i];
      if (its_turns[i].begins) begun.push_back({step.batch, step.rows, step.columns});
      if (its_turns[i].ends) ended.push_back({step.batch, step.rows, step.columns});
    }
    if (begun != ended) refuse("panels of a task end in another order than they begin");
  }
  if (half && (groups[1].intervals != groups[2].intervals || groups[1].members != groups[2].members))
    refuse("half of a result is made, but its rows and columns are cut differently");
  for (const Side& side : sides) {
    std::size_t cells = 1, axes = 0;
    for (const int group : side.groups) {
      cells *= groups.at(static_cast<std::size_t>(group)).cells.size();
      axes += static_cast<std::size_t>(groups[static_cast<std::size_t>(group)].axes);
    }
    if (!side.flags.empty() && side.flags.size() != cells) refuse("the flags are not those of the cells");
    if (side.axes.size() != axes) refuse("an array has other axes than its groups");
    for (std::size_t which = 0; which < 3; ++which)
      for (int place = 0; place < groups[static_cast<std::size_t>(side.groups[which])].axes; ++place)
        if (std::count(side.axes.begin(), side.axes.end(), std::pair(static_cast<int>(which), place)) != 1)
          refuse("an array lacks an axis of its groups");
  }
}

Moved carry_out(const Steps& steps, const Execution& how, const Arrays& arrays, const Multiply& multiply,
                Counter* counter, const Watch& watch, const Sharing& sharing) {
  try {
    check(steps, how);
    return Loop(steps, how, arrays, multiply, counter, watch, sharing).run();
  } catch (...) {
    if (sharing.memory) sharing.memory->fail();
    if (counter) counter->next(stop);
    throw;
  }
}

}  // namespace outcore::tensor
