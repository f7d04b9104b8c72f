// The protocol of procedure calls as a state machine: packets and calls in, packets and results out. It has
// no thread, no clock and no transport, so that a simulator can drive many of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/request_state.hpp"
#include "device/buffer.hpp"
#include "gpc/call_slots.hpp"
#include "outcore/call.hpp"
#include "outcore/extend/messages.hpp"
#include "outcore/extend/transport.hpp"
#include "transport/mapping.hpp"

namespace outcore::gpc {

class Service;

/// Memory that is not initialized. If it is larger than a packet it is I/O memory: aligned for disks, and
/// used again, so that its pages exist already.
struct Bytes {
  Bytes() = default;
  explicit Bytes(std::size_t size);
  explicit Bytes(std::span<const std::byte> from);
  [[nodiscard]] std::span<std::byte> span() const noexcept {
    return {lent ? lent : large.data() ? large.data() : small.get(), size_bytes};
  }

  std::unique_ptr<std::byte[]> small;
  device::Buffer large;
  std::byte* lent = nullptr;  // memory of others
  std::size_t size_bytes = 0;
};

/// The error of calls to a process that has died.
[[nodiscard]] Error died(int process);

/// A call at its caller, and its request. It fails with the error of the procedure, or with Error: EMSGSIZE
/// (the reply is larger than the room for it), ENOENT (unknown procedure), ESHUTDOWN (the world is closing),
/// ECONNRESET (the target has died).
struct Pending final : Request::State {
  [[nodiscard]] bool done() const noexcept override { return complete.load(std::memory_order_acquire); }
  void finish() override;
  [[nodiscard]] std::exception_ptr error() const override;
  [[nodiscard]] std::int64_t value() const noexcept override {
    return static_cast<std::int64_t>(came.size());
  }
  [[nodiscard]] std::span<std::byte> reply() const noexcept override { return came; }
  bool help() noexcept override;
  void check_may_wait() const override;
  void begin_wait() override;
  void end_wait(std::uint64_t waited_ns) noexcept override;

  int target = 0;
  std::uint32_t procedure = 0;
  Bytes header;
  std::span<const std::byte> payload;
  CallOptions options;

  // The result, to be read once the call is done.
  Bytes own_reply;            // if options.reply is empty
  std::span<std::byte> came;  // the part of either that was filled
  std::optional<Error> failure;
  std::atomic<bool> complete{false};
  Service* service = nullptr;

  [[nodiscard]] std::int64_t reply_room() const noexcept {
    return options.reply.empty() ? options.max_reply_bytes : static_cast<std::int64_t>(options.reply.size());
  }
  /// Finds out whether processes of a host see the memory of payload and reply; else finds room that they
  /// see. Before the call.
  void find_room(CallSlots& slots);
  /// Copies the reply out of the room, and frees the room. When the call is complete, before it is done.
  void settle() noexcept;

  // Used by the protocol.
  CallSlots::Slot payload_slot, reply_slot;
  std::optional<transport::SharedLocation> payload_seen, reply_seen;  // places of payload and reply
  std::uint32_t tag = 0;                                              // of the payload
  bool reply_placed = false;
  std::uint64_t number = 0;
  int legs = 0;  // number of events before it is complete: the reply, the ends of bulk transfers
};

/// A call at its target. If it has not ended when the last holder releases it, it fails.
struct Served {
  Served() = default;
  ~Served();
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  /// Copies a reply that would travel as bulk data into the room, if there is room and the reply is not
  /// large. Returns its new place.
  [[nodiscard]] std::span<const std::byte> put_into_room(std::span<const std::byte> reply) const noexcept;
  /// Releases memory of the caller's program once the call has ended, though copies of the call may remain.
  void let_go() noexcept;

  int caller = 0;
  std::uint64_t number = 0;
  std::uint32_t procedure = 0;
  std::int64_t max_reply_bytes = 0;
  Bytes header, payload;
  std::span<std::byte> room;  // room for the reply at the caller; empty: this process cannot see it
  std::shared_ptr<std::byte> seen_payload, seen_room;  // not null: memory of the program there, kept mapped
  bool bulk = false;                                   // its payload travelled as bulk data
  Service* service = nullptr;                          // set when it was handed over
  bool ended = false;
  bool yielded = false;  // its credit was returned early
};

/// All calls of one process, to it and from it. At most as many calls are in flight between two processes as
/// the target granted with its last reply; further ones wait at the caller. A target grants the more, the
/// fewer callers it has. A payload or reply that does not fit into a packet stays in place if the target sees
/// that memory. Else it is copied to room at the caller that the target sees, if there is some. Else it is
/// bulk data, which the other side takes when it has memory for it.
class Protocol {
 public:
  struct Limits {
    int credits_at_first = 2;
    int max_credits = 32;
    int max_served = 4096;  ///< number of calls granted here at once, for all callers together
    std::int64_t max_held_bytes = 64LL << 20;  ///< of bulk payloads here at once; at least one payload
  };

  /// The functions that the protocol calls within its methods. None of them may call the protocol, except
  /// `serve`, which may end the call.
  struct Outlet {
    virtual ~Outlet() = default;
    virtual void send(int to, transport::Packet packet) = 0;
    virtual void send_bulk(int to, std::uint32_t tag, std::span<const std::byte> data,
                           std::uint64_t token) = 0;
    virtual void receive_bulk(int from, std::uint32_t tag, std::span<std::byte> into,
                              std::uint64_t token) = 0;
    /// See transport::Messages.
    [[nodiscard]] virtual std::span<std::byte> common(int process) const noexcept = 0;
    /// See transport::see_shared.
    [[nodiscard]] virtual std::shared_ptr<std::byte> see(const transport::SharedLocation& location,
                                                         std::size_t size_bytes) const noexcept = 0;
    virtual void serve(std::shared_ptr<Served> served) = 0;       ///< serves a call that has arrived in full
    virtual void complete(std::shared_ptr<Pending> pending) = 0;  ///< has its reply or error
  };

  Protocol(int rank, Outlet& outlet, const Limits& limits) : rank_(rank), outlet_(outlet), limits_(limits) {}
  Protocol(int rank, Outlet& outlet) : Protocol(rank, outlet, Limits{}) {}

  void call(std::shared_ptr<Pending> pending);
  void packet(int from, std::span<const std::byte> packet);
  void bulk_done(std::uint64_t token, int errno_value);
  /// Ends a call that was served. `keeper` owns the memory of the reply; null: the reply is copied if
  /// necessary.
  void answer(const Served& served, std::span<const std::byte> reply, std::shared_ptr<const void> keeper);
  void fail(const Served& served, const Error& error);
  /// A call will take long, because it waits for other calls: its caller no longer counts it. Otherwise calls
  /// that wait for calls could use up the credits that they wait for.
  void yield(Served& served);
  /// A process cannot be reached any more: calls to it fail with this error, also later ones; its own calls
  /// are dropped.
  void lost(int process, const Error& error);

  [[nodiscard]] std::size_t calls() const noexcept { return pending_.size() + waiting_; }  ///< not complete
  [[nodiscard]] std::size_t transfers() const noexcept { return transfers_.size(); }  ///< bulk, under way
  [[nodiscard]] std::size_t served() const noexcept { return served_; }  ///< calls here that have not ended
  [[nodiscard]] std::int64_t held_bytes() const noexcept { return held_bytes_; }  ///< of bulk payloads here
  /// The next call to be sent to this process, if at least this many wait; else null.
  [[nodiscard]] std::shared_ptr<Pending> waiting_for(int process, std::size_t at_least) const;
  [[nodiscard]] std::vector<int> targets() const;  ///< processes at which calls of this one are not complete

 private:
  struct Peer {  // calls to and from one process
    int in_flight = 0, credits = 0;
    std::deque<std::shared_ptr<Pending>> waiting = {};
    std::uint32_t next_tag = 0;
    int served = 0;
    std::optional<Error> lost = {};
  };
  struct Transfer {
    int peer = 0;
    std::shared_ptr<Pending> pending = {};    // the call whose payload or reply it moves
    std::shared_ptr<Served> arriving = {};    // the call whose payload it moves
    std::shared_ptr<const void> keeper = {};  // memory of the reply that it moves
    std::optional<Error> failure = {};        // why there was no memory for arriving data
  };
  struct Arrival {  // a call whose payload is still at its caller
    std::shared_ptr<Served> served;
    std::uint32_t tag;
  };

  Peer& peer(int process);
  std::uint32_t next_tag(int process);
  void launch(int process, const std::shared_ptr<Pending>& pending);
  void launch_waiting(int process);
  void send_payload(const std::shared_ptr<Pending>& pending);
  void want_arrived(std::span<const std::byte> packet);
  void call_arrived(int from, std::span<const std::byte> packet);
  void reply_arrived(int from, std::span<const std::byte> packet);
  void credit_arrived(int from, std::span<const std::byte> packet);
  [[nodiscard]] std::uint16_t credits() const noexcept;
  void receive_payloads();
  void leg_done(const std::shared_ptr<Pending>& pending);
  void abandon(const std::shared_ptr<Pending>& pending, const Error& error);
  void end(const Served& served);
  void finish(std::shared_ptr<Pending> pending, const Error& error);
  std::uint64_t begin_transfer(Transfer transfer);
  void reply(const Served& served, std::span<const std::byte> bytes, int errno_value,
             std::shared_ptr<const void> keeper);

  int rank_;
  Outlet& outlet_;
  Limits limits_;
  std::unordered_map<int, Peer> peers_;  // processes with which this one has had calls
  std::unordered_map<std::uint64_t, std::shared_ptr<Pending>> pending_;
  std::unordered_map<std::uint64_t, Transfer> transfers_;
  std::deque<Arrival> arrivals_;
  std::uint64_t next_number_ = 0, next_token_ = 0;
  std::size_t waiting_ = 0, served_ = 0;
  int callers_ = 0;  // processes whose calls are being served
  std::int64_t held_bytes_ = 0;
};

}  // namespace outcore::gpc
