// A simulation of many processes that call one another: one thread, one seed, and any order of events that a
// network may cause. The protocol is that of real jobs; the network and the disks are simulated.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "gpc/protocol.hpp"
#include "outcore/extend/transport.hpp"
#include "transport/mapping.hpp"

namespace simulator {

using namespace outcore;
using gpc::Pending;
using gpc::Protocol;
using gpc::Served;

using Random = std::mt19937_64;
inline std::int64_t below(Random& random, std::int64_t end) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
}

/// What may happen in a run; the seed determines everything.
struct Plan {
  explicit Plan(std::uint64_t the_seed) : seed(the_seed), random(the_seed) {
    processes = static_cast<int>(2 + below(random, 7));
    max_delay = 1 + below(random, 1000);
    limits.credits_at_first = static_cast<int>(1 + below(random, 3));
    limits.max_credits = static_cast<int>(1 + below(random, 8));
    limits.max_served = static_cast<int>(1 + below(random, 16));
    limits.max_held_bytes = 1 + below(random, 40'000);
    fault_percent = below(random, 3) == 0 ? below(random, 30) : 0;
    yield_percent = below(random, 2) == 0 ? below(random, 60) : 0;
    hosts = static_cast<int>(1 + below(random, 3));
    dying = processes > 2 && below(random, 4) == 0 ? static_cast<int>(below(random, processes)) : -1;
  }
  /// The plan of a large job: one process in 16 is `times_slower` times slower than the others, and one dies.
  Plan(std::uint64_t the_seed, int many, std::int64_t times_slower) : Plan(the_seed) {
    processes = many;
    hosts = 0;
    slower = times_slower;
    dying = static_cast<int>(below(random, processes));
  }
  [[nodiscard]] std::int64_t slowness(int process) const noexcept { return process % 16 == 5 ? slower : 1; }
  std::uint64_t seed;
  Random random;
  int processes;
  int hosts;                   // 0: no process sees memory of another
  std::int64_t max_delay;      // of a packet, in units of simulated time
  std::int64_t fault_percent;  // of disk operations, and of transfers of bulk data
  std::int64_t yield_percent;  // of calls, which give their credit back and take long
  int dying;                   // a process that does, or -1
  std::int64_t slower = 1;     // times, of some processes, to serve a call
  Protocol::Limits limits;
};

/// Events in order of time; those of equal time in the order in which they were made.
class Clock {
 public:
  void at(std::int64_t time, std::function<void()> what) { events_.push({time, next_++, std::move(what)}); }
  void after(std::int64_t delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }
  bool step() {
    if (events_.empty()) return false;
    const Event event = events_.top();
    events_.pop();
    now_ = event.time;
    event.what();
    return true;
  }
  [[nodiscard]] std::int64_t now() const noexcept { return now_; }

 private:
  struct Event {
    std::int64_t time;
    std::uint64_t number;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::tie(other.time, other.number) < std::tie(time, number);
    }
  };
  std::priority_queue<Event> events_;
  std::int64_t now_ = 0;
  std::uint64_t next_ = 0;
};

/// Packets between a pair of processes keep their order; all others may overtake one another. A limited
/// number of packets of a pair are under way; the others wait. A bulk transfer happens some time after both
/// sides have come.
class Network {
 public:
  struct Port {
    std::function<void(int from, std::span<const std::byte>)> packet;
    std::function<void(std::uint64_t token, int errno_value)> bulk_done;
  };
  Network(Plan& plan, Clock& clock)
      : plan_(plan), clock_(clock), ports_(static_cast<std::size_t>(plan.processes)) {}
  /// Memory of a process that others on its host see.
  [[nodiscard]] std::span<std::byte> common(int from, int process) {
    if (plan_.hosts == 0 || from % plan_.hosts != process % plan_.hosts) return {};
    auto& memory = common_[process];
    if (!memory) memory = std::make_unique<transport::Mapping>(transport::Messages::common_bytes);
    return {memory->data(), transport::Messages::common_bytes};
  }
  /// The location of memory that counts as shared; it has the same address everywhere. Some processes do not
  /// see it.
  [[nodiscard]] static transport::SharedLocation location_of(std::span<const std::byte> bytes) noexcept {
    return {1, 1, static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(bytes.data()))};
  }
  [[nodiscard]] std::shared_ptr<std::byte> see(const transport::SharedLocation& location) noexcept {
    if (location.offset < 0 || below(plan_.random, 4) == 0) return nullptr;
    return {std::make_shared<int>(),
            reinterpret_cast<std::byte*>(static_cast<std::intptr_t>(location.offset))};
  }
  Port& port(int process) { return ports_[static_cast<std::size_t>(process)]; }

  /// A process dies. Transfers with it end with an error, or never.
  void kill(int process) {
    dead_ = process;
    for (const auto& [key, side] : sides_) {
      const auto& [from, to, tag] = key;
      if (from == process || to == process) break_off(from, to, side.sends, side.token);
    }
  }

  void send(int from, int to, std::vector<std::byte> packet) {
    if (from == dead_ || to == dead_) return;
    Pair& pair = pairs_[{from, to}];
    pair.packets.push_back(std::move(packet));
    if (pair.under_way < max_under_way) launch(from, to);
  }

  void bulk(int from, int to, std::uint32_t tag, bool sends, std::span<std::byte> data, std::uint64_t token) {
    if (from == dead_ || to == dead_) return break_off(from, to, sends, token);
    const auto key = std::make_tuple(from, to, tag);
    const auto found = sides_.find(key);
    if (found == sides_.end()) {
      sides_[key] = {sends, data, token};
      return;
    }
    const Side other = found->second;
    sides_.erase(found);
    if (other.sends == sends) throw std::logic_error("two transfers with one tag");
    const Side mine{sends, data, token};
    const Side &source = sends ? mine : other, &target = sends ? other : mine;
    clock_.after(1 + below(plan_.random, plan_.max_delay), [=, this] {
      if (from == dead_ || to == dead_) {
        break_off(from, to, true, source.token);
        break_off(from, to, false, target.token);
        return;
      }
      if (source.data.size() != target.data.size()) throw std::logic_error("sides of a transfer differ");
      const int outcome = below(plan_.random, 100) < plan_.fault_percent ? EIO : 0;
      if (outcome == 0) std::copy(source.data.begin(), source.data.end(), target.data.begin());
      // The sides notice at different times.
      clock_.after(below(plan_.random, plan_.max_delay),
                   [=, this] { port(to).bulk_done(target.token, outcome); });
      clock_.after(below(plan_.random, plan_.max_delay),
                   [=, this] { port(from).bulk_done(source.token, outcome); });
    });
  }

 private:
  static constexpr int max_under_way = 4;
  struct Pair {
    std::deque<std::vector<std::byte>> packets;
    int under_way = 0;
    std::int64_t last_arrival = 0;
  };
  struct Side {
    bool sends;
    std::span<std::byte> data;
    std::uint64_t token;
  };

  /// One side of a transfer with a process that is dead.
  void break_off(int from, int to, bool sends, std::uint64_t token) {
    const int side = sends ? from : to;
    if (side == dead_ || below(plan_.random, 2) == 0) return;
    clock_.after(below(plan_.random, plan_.max_delay),
                 [=, this] { port(side).bulk_done(token, ECONNRESET); });
  }

  void launch(int from, int to) {
    Pair& pair = pairs_[{from, to}];
    auto packet = std::move(pair.packets.front());
    pair.packets.pop_front();
    ++pair.under_way;
    pair.last_arrival = std::max(pair.last_arrival, clock_.now() + 1 + below(plan_.random, plan_.max_delay));
    clock_.at(pair.last_arrival, [this, from, to, packet = std::move(packet)] {
      Pair& own = pairs_[{from, to}];
      --own.under_way;
      if (!own.packets.empty()) launch(from, to);
      if (to != dead_) port(to).packet(from, packet);
    });
  }

  Plan& plan_;
  Clock& clock_;
  int dead_ = -1;
  std::vector<Port> ports_;
  std::map<std::pair<int, int>, Pair> pairs_;
  std::map<int, std::unique_ptr<transport::Mapping>> common_;
  std::map<std::tuple<int, int, std::uint32_t>, Side> sides_;
};

/// A process: a protocol, and a disk of numbers that other processes get, put and accumulate.
class Process final : Protocol::Outlet {
 public:
  static constexpr std::int64_t accumulated = 1024;  // numbers on the disk that are; others follow
  enum Operation : std::uint32_t { get, put, accumulate };
  struct Request {
    std::int64_t first = 0, count = 0;
  };

  Process(int rank, Plan& plan, Clock& clock, Network& network)
      : protocol_(rank, *this, plan.limits),
        rank_(rank),
        plan_(plan),
        clock_(clock),
        network_(network),
        slots_(std::make_shared<gpc::CallSlots>(network.common(rank, rank))) {
    network_.port(rank) = {
        [this](int from, std::span<const std::byte> packet) { protocol_.packet(from, packet); },
        [this](std::uint64_t token, int error) { protocol_.bulk_done(token, error); }};
  }

  [[nodiscard]] Protocol& protocol() noexcept { return protocol_; }
  void call(const std::shared_ptr<Pending>& pending) {
    if (!common(pending->target).empty()) {
      pending->find_room(*slots_);
      if (pending->payload_slot && below(plan_.random, 2) == 0) {
        pending->payload_slot.clear();
        pending->payload_seen = Network::location_of(pending->payload);
      }
      if (pending->reply_slot && !pending->options.reply.empty()) {
        pending->reply_slot.clear();
        pending->reply_seen = Network::location_of(pending->options.reply);
      }
    }
    protocol_.call(pending);
  }
  [[nodiscard]] std::vector<std::int64_t>& disk() noexcept { return disk_; }
  /// The largest number of calls of one caller that were here in full at once without having returned their
  /// credits.
  [[nodiscard]] int max_of_one_caller() const noexcept { return max_of_one_caller_; }
  std::function<void(const std::shared_ptr<Pending>&)> on_complete;

 private:
  void send(int to, transport::Packet packet) override {
    std::vector<std::byte> bytes(transport::size_of(packet));
    transport::gather(packet, bytes.data());
    network_.send(rank_, to, std::move(bytes));
  }
  void send_bulk(int to, std::uint32_t tag, std::span<const std::byte> data, std::uint64_t token) override {
    network_.bulk(rank_, to, tag, true, {const_cast<std::byte*>(data.data()), data.size()}, token);
  }
  void receive_bulk(int from, std::uint32_t tag, std::span<std::byte> into, std::uint64_t token) override {
    network_.bulk(from, rank_, tag, false, into, token);
  }
  [[nodiscard]] std::shared_ptr<std::byte> see(const transport::SharedLocation& location,
                                               std::size_t) const noexcept override {
    return network_.see(location);
  }
  [[nodiscard]] std::span<std::byte> common(int process) const noexcept override {
    return network_.common(rank_, process);
  }
  void complete(std::shared_ptr<Pending> pending) override {
    pending->settle();
    on_complete(pending);
  }

  void serve(std::shared_ptr<Served> served) override {
    max_of_one_caller_ = std::max(max_of_one_caller_, ++counted_[served->caller]);
    const bool yields = below(plan_.random, 100) < plan_.yield_percent;
    const std::int64_t until = plan_.slowness(rank_) * below(plan_.random, 3 * plan_.max_delay);
    if (yields)
      clock_.after(until, [this, served] {
        --counted_[served->caller];
        protocol_.yield(*served);
      });
    carry_out(until + (yields ? below(plan_.random, 10 * plan_.max_delay) : 0), served);
  }

  /// The disk takes some time, and fails now and then, before it has changed anything.
  void carry_out(std::int64_t delay, std::shared_ptr<Served> served) {
    clock_.after(delay, [this, served] {
      if (!served->yielded) --counted_[served->caller];
      if (below(plan_.random, 100) < plan_.fault_percent) {
        protocol_.fail(*served, Error(EIO, {.attempted = "simulated transfer"}, rank_));
        return;
      }
      Request request;
      std::memcpy(&request, served->header.span().data(), sizeof request);
      const auto end = static_cast<std::size_t>(request.first + request.count);
      if (disk_.size() < end) disk_.resize(end);
      const auto place = std::span(disk_).subspan(static_cast<std::size_t>(request.first),
                                                  static_cast<std::size_t>(request.count));
      if (served->procedure == get) {
        auto copy = std::make_shared<std::vector<std::int64_t>>(place.begin(), place.end());
        protocol_.answer(*served, served->put_into_room(std::as_bytes(std::span(*copy))), copy);
        return;
      }
      std::vector<std::int64_t> values(place.size());
      std::memcpy(values.data(), served->payload.span().data(), served->payload.size_bytes);
      for (std::size_t i = 0; i < place.size(); ++i)
        place[i] = served->procedure == put ? values[i] : place[i] + values[i];
      protocol_.answer(*served, {}, nullptr);
    });
  }

  Protocol protocol_;
  int rank_;
  Plan& plan_;
  Clock& clock_;
  Network& network_;
  std::shared_ptr<gpc::CallSlots> slots_;
  std::vector<std::int64_t> disk_ = std::vector<std::int64_t>(accumulated);
  std::map<int, int> counted_;  // by caller: calls here in full that count
  int max_of_one_caller_ = 0;
};

}  // namespace simulator
