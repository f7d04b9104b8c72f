// Calls for whose payload or reply one side has no memory: they fail at the caller, and leave nothing behind.
#include <cerrno>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "gpc/protocol.hpp"
#include "outcore/extend/transport.hpp"
#include "support/check.hpp"

namespace {

using namespace outcore;
using gpc::Pending;
using gpc::Protocol;
using gpc::Served;

constexpr std::size_t too_much = std::size_t{1} << 50;  // bytes, never touched

/// Two processes whose messages arrive in order.
struct Pair {
  struct Process final : Protocol::Outlet {
    Process(Pair& all, int its_rank) : pair(all), rank(its_rank), protocol(its_rank, *this) {}
    void send(int to, transport::Packet packet) override {
      auto bytes = std::make_shared<std::vector<std::byte>>(transport::size_of(packet));
      transport::gather(packet, bytes->data());
      pair.then([this, to, bytes] { pair[to].protocol.packet(rank, *bytes); });
    }
    void send_bulk(int, std::uint32_t tag, std::span<const std::byte> data, std::uint64_t token) override {
      pair.then([this, tag, data, token] {
        const auto into = pair[1 - rank].expected.at(tag);
        const int error = into.size == data.size() ? 0 : EMSGSIZE;
        pair[1 - rank].protocol.bulk_done(into.token, error);
        pair.then([this, token, error] { protocol.bulk_done(token, error); });  // is told after that
      });
    }
    void receive_bulk(int, std::uint32_t tag, std::span<std::byte> into, std::uint64_t token) override {
      expected[tag] = {into.size(), token};
    }
    std::span<std::byte> common(int) const noexcept override { return {}; }
    std::shared_ptr<std::byte> see(const transport::SharedLocation&, std::size_t) const noexcept override {
      return nullptr;
    }
    void serve(std::shared_ptr<Served> served) override { pair.serve(std::move(served)); }
    void complete(std::shared_ptr<Pending> pending) override { pending->complete = true; }

    struct Expected {
      std::size_t size;
      std::uint64_t token;
    };
    Pair& pair;
    int rank;
    Protocol protocol;
    std::map<std::uint32_t, Expected> expected;
  };

  Process& operator[](int rank) { return rank == 0 ? first : second; }
  void then(std::function<void()> event) { events.push_back(std::move(event)); }
  std::shared_ptr<Pending> call(std::span<const std::byte> payload, std::int64_t max_reply_bytes) {
    auto pending = std::make_shared<Pending>();
    pending->target = 1;
    pending->payload = payload;
    pending->options.max_reply_bytes = max_reply_bytes;
    first.protocol.call(pending);
    for (; !events.empty(); events.pop_front()) events.front()();
    return pending;
  }
  void check_failed(const Pending& pending, int rank) {
    check::is_true(pending.done());
    check::is_true(pending.failure && pending.failure->errno_value() == ENOMEM);
    check::is_true(pending.failure->rank() == rank);
    for (Process* each : {&first, &second}) {
      check::is_true(each->protocol.calls() == 0 && each->protocol.transfers() == 0);
      check::is_true(each->protocol.served() == 0 && each->protocol.held_bytes() == 0);
    }
  }

  std::function<void(std::shared_ptr<Served>)> serve;
  std::deque<std::function<void()>> events;
  Process first{*this, 0}, second{*this, 1};
};

}  // namespace

TEST("a payload that its target has no memory for fails at the caller") {
  Pair pair;
  std::byte begin{};
  const auto pending = pair.call({&begin, too_much}, 0);
  pair.check_failed(*pending, 1);
}

TEST("a reply that its caller has no memory for fails there") {
  Pair pair;
  static std::byte begin{};
  pair.serve = [&](const std::shared_ptr<Served>& served) {
    served->ended = true;
    pair[1].protocol.answer(*served, {&begin, too_much}, std::make_shared<int>());
  };
  const auto pending = pair.call({}, static_cast<std::int64_t>(too_much));
  pair.check_failed(*pending, 0);
}

TEST_MAIN
