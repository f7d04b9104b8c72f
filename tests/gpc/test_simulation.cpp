// The protocol under thousands of simulated histories. OUTCORE_SEED=n replays one, OUTCORE_SEEDS=n runs more.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <utility>

#include "gpc/simulator.hpp"
#include "support/check.hpp"

namespace {

using namespace simulator;

/// Processes of one simulated job. The first numbers of a disk are accumulated by all, the others put once.
class Job {
 public:
  explicit Job(Plan plan) : plan_(std::move(plan)), network_(plan_, clock_) {
    for (int rank = 0; rank < plan_.processes; ++rank) {
      processes_.push_back(std::make_unique<Process>(rank, plan_, clock_, network_));
      processes_.back()->on_complete = [this](const std::shared_ptr<Pending>& pending) { ended(pending); };
    }
    accumulated_.assign(processes_.size(), std::vector<std::int64_t>(row));
  }

  /// `looks`: the number of events after which the bounds of all processes are checked.
  void run(std::int64_t most = 150, int looks = 1) {
    const std::int64_t wanted = 1 + below(plan_.random, most);
    for (std::int64_t i = 0; i < wanted; ++i)
      clock_.at(below(plan_.random, 20 * plan_.max_delay), [this] { start(); });
    if (plan_.dying >= 0) clock_.at(below(plan_.random, 20 * plan_.max_delay), [this] { kill(); });
    for (std::int64_t event = 0; clock_.step(); ++event)
      if (event % looks == 0) check_bounds();
    for (const auto& list : {std::cref(calls_), std::cref(gets_)})
      for (const auto& call : list.get()) {
        if (call->from == plan_.dying) continue;
        check::equal(call->endings, 1);
        if (plan_.fault_percent == 0 && call->target != plan_.dying)
          check::is_true(!call->pending->failure, "failed without a fault");
        if (plan_.fault_percent == 0 && call->pending->failure)
          check::equal(std::string(call->pending->failure->what()), gpc::died(plan_.dying).what());
      }
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
      if (static_cast<int>(rank) == plan_.dying) continue;
      const gpc::Protocol& protocol = processes_[rank]->protocol();
      check::equal(protocol.calls(), 0U);
      check::equal(protocol.served(), 0U);
      check::equal(protocol.transfers(), 0U);
      check::is_true(protocol.targets().empty(), "a credit was lost");
    }
    // Every acknowledged accumulate has its effect once; no other has any.
    for (std::size_t rank = 0; rank < processes_.size(); ++rank)
      if (static_cast<int>(rank) != plan_.dying)
        check::is_true(std::equal(accumulated_[rank].begin(), accumulated_[rank].end(),
                                  processes_[rank]->disk().begin()),
                       "an accumulate was lost, or counted twice");
  }

 private:
  static constexpr std::int64_t row = Process::accumulated;
  static constexpr std::int64_t max_bytes = 8 * row;  // of a payload

  struct Call {
    std::shared_ptr<Pending> pending = std::make_shared<Pending>();
    std::vector<std::int64_t> values;
    int from = 0, target = 0, endings = 0;
    Process::Request request;
    Process::Operation operation = Process::get;
    std::function<void(const Call&)> check = [](const Call&) {};
  };

  /// The memory that a process holds for others has a bound, whatever these ask for.
  void check_bounds() {
    const int max_calls = std::max(plan_.limits.credits_at_first, plan_.limits.max_credits);
    for (const auto& process : processes_) {
      check::is_true(process->max_of_one_caller() <= max_calls, "more calls of one caller than granted");
      check::is_true(process->protocol().held_bytes() <= std::max(plan_.limits.max_held_bytes, max_bytes),
                     "more payload held than the limit, or one");
    }
  }

  /// A process dies; the others hear of it some time later.
  void kill() {
    dead_ = true;
    network_.kill(plan_.dying);
    for (int rank = 0; rank < plan_.processes; ++rank)
      if (rank != plan_.dying)
        clock_.after(below(plan_.random, 10 * plan_.max_delay), [this, rank] {
          processes_[static_cast<std::size_t>(rank)]->protocol().lost(plan_.dying, gpc::died(plan_.dying));
        });
  }

  void start() {
    const int from = static_cast<int>(below(plan_.random, plan_.processes));
    if (dead_ && from == plan_.dying) return;
    // Nobody knows which accumulates of a dying process have arrived.
    const bool sums = below(plan_.random, 2) == 0 && from != plan_.dying;
    Call& call = begin(sums ? Process::accumulate : Process::put);
    call.request.count = 1 + below(plan_.random, below(plan_.random, 3) == 0 ? row : 20);
    call.request.first = sums ? below(plan_.random, row - call.request.count + 1)
                              : std::exchange(next_place_, next_place_ + call.request.count);
    call.values.resize(static_cast<std::size_t>(call.request.count));
    for (auto& value : call.values) value = 1 + below(plan_.random, 1000);
    call.check = [this, from](const Call& done) {
      if (done.pending->failure) return;
      if (done.operation == Process::accumulate) {
        auto& sum = accumulated_[static_cast<std::size_t>(done.target)];
        for (std::size_t i = 0; i < done.values.size(); ++i)
          sum[static_cast<std::size_t>(done.request.first) + i] += done.values[i];
      } else {
        read_back(from, done);
      }
    };
    send(from, call);
  }

  /// A later get finds what was acknowledged.
  void read_back(int from, const Call& put) {
    Call& call = begin(Process::get);
    call.target = put.target;
    call.request = put.request;
    if (below(plan_.random, 2) == 0) {
      call.values.resize(put.values.size());
      call.pending->options.reply = std::as_writable_bytes(std::span(call.values));
    } else {
      call.pending->options.max_reply_bytes = 8 * put.request.count;
    }
    call.check = [expected = put.values](const Call& done) {
      if (done.pending->failure) return;
      const auto reply = done.pending->came;
      check::equal(reply.size(), expected.size() * 8);
      check::is_true(std::memcmp(reply.data(), expected.data(), reply.size()) == 0, "a put was lost");
    };
    send(from, call);
  }

  Call& begin(Process::Operation operation) {
    auto call = std::make_unique<Call>();
    call->operation = operation;
    call->target = static_cast<int>(below(plan_.random, plan_.processes));
    auto& list = operation == Process::get ? gets_ : calls_;
    list.push_back(std::move(call));
    return *list.back();
  }

  void send(int from, Call& call) {
    call.from = from;
    Pending& pending = *call.pending;
    pending.target = call.target;
    pending.procedure = call.operation;
    pending.header = gpc::Bytes(std::as_bytes(std::span(&call.request, 1)));
    pending.payload = std::as_bytes(std::span(call.values));
    by_pending_[call.pending.get()] = &call;
    processes_[static_cast<std::size_t>(from)]->call(call.pending);
  }

  void ended(const std::shared_ptr<Pending>& pending) {
    Call& call = *by_pending_.at(pending.get());
    check::equal(++call.endings, 1);
    // The protocol calls this, so the next step comes later.
    clock_.after(0, [&call] { call.check(call); });
  }

  Plan plan_;
  Clock clock_;
  Network network_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Call>> calls_, gets_;
  std::map<const Pending*, Call*> by_pending_;
  std::vector<std::vector<std::int64_t>> accumulated_;
  bool dead_ = false;
  std::int64_t next_place_ = row;  // that no other put of this job uses
};

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST("every call ends once, nothing acknowledged is lost, accumulates add up, also if a process dies") {
  const std::uint64_t first = number_from("OUTCORE_SEED", 0);
  const std::uint64_t count = std::getenv("OUTCORE_SEED") ? 1 : number_from("OUTCORE_SEEDS", 5000);
  for (std::uint64_t seed = first; seed < first + count; ++seed) try {
      Job(Plan(seed)).run();
    } catch (const std::exception& error) {
      check::fail("seed " + std::to_string(seed) + " (replay: OUTCORE_SEED=" + std::to_string(seed) +
                      "): " + error.what(),
                  std::source_location::current());
    }
}

TEST("the same holds of 1024 processes, some of which are 50 times slower, and one dies") {
  Job(Plan(number_from("OUTCORE_SEED", 1), 1024, 50)).run(20'000, 500);
}

}  // namespace

TEST_MAIN
