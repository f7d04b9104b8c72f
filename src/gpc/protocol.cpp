#include "gpc/protocol.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "outcore/extend/transport.hpp"
#include "transport/mapping.hpp"
#include "transport/remote_error.hpp"

namespace outcore::gpc {
namespace {

using transport::Messages;

enum class Kind : std::uint8_t { call = 1, reply = 2, credit = 3, want = 4 };

// The beginning of a packet. Behind that of a call follow the place of shared memory (if the call has some),
// the header, and the payload, unless it lies in shared memory or travels as bulk data. Behind that of a
// reply follow its bytes, or those of an error, unless they lie where the call said or travel as bulk data.
struct CallHead {
  Kind kind = Kind::call;
  bool bulk = false;
  std::uint16_t header_bytes = 0;
  std::uint32_t procedure = 0;
  std::uint64_t number = 0;
  std::int64_t payload_bytes = 0, max_reply_bytes = 0;
  std::uint32_t tag = 0;
  // Place of payload and reply in the memory that the caller shares with its host; -1: not there.
  std::int32_t payload_at = -1, reply_at = -1;
  std::uint32_t seen = 0;  // 1: memory of the caller's program is shared, too, and its place follows
};
/// Place of payload and reply if they lie in shared memory of the program; else the offset is -1.
struct Seen {
  transport::SharedLocation payload = transport::nowhere, reply = transport::nowhere;
};
struct ReplyHead {
  Kind kind = Kind::reply;
  bool bulk = false, yielded = false, placed = false;  // placed: the reply lies where the call said
  std::uint16_t credits = 0, unused = 0;
  std::int32_t errno_value = 0;
  std::uint64_t number = 0;
  std::int64_t size_bytes = 0;
  std::uint32_t tag = 0;
};
/// The target cannot see the memory of the payload: the caller must send it as bulk data with the tag of the
/// call.
struct WantHead {
  Kind kind = Kind::want;
  std::uint64_t number = 0;
};
struct CreditHead {
  Kind kind = Kind::credit;
  std::uint16_t credits = 0;
};

constexpr std::size_t max_error_bytes = Messages::max_packet_bytes - sizeof(ReplyHead);

template <class Head>
std::span<const std::byte> bytes_of(const Head& head) noexcept {
  return std::as_bytes(std::span(&head, 1));
}

template <class Head>
Head head_of(std::span<const std::byte> packet) {
  Head head;
  assert(packet.size() >= sizeof head);
  std::memcpy(&head, packet.data(), sizeof head);
  return head;
}

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  const std::less<> before;
  return before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

/// The current exception as an Error, after `size_bytes` of memory were requested.
Error no_memory(const char* attempted, std::int64_t size_bytes) {
  const Error error = transport::current_error(attempted);
  return {error.errno_value(),
          {.attempted = attempted, .size_bytes = size_bytes, .detail = error.context().detail}};
}

/// The bytes of an error, with as much of its text as a packet holds.
std::vector<std::byte> short_bytes(const Error& error) {
  auto bytes = transport::to_bytes(error);
  ErrorContext context = error.context();
  for (std::string* text : {&context.detail, &context.attempted, &context.path}) {
    if (bytes.size() <= max_error_bytes) break;
    text->resize(std::min<std::size_t>(text->size(), 1000));
    bytes = transport::to_bytes(Error(error.errno_value(), context, error.rank()));
  }
  return bytes;
}

}  // namespace

Error died(int process) {
  return {ECONNRESET, {.attempted = "call process " + std::to_string(process), .detail = "it has died"}};
}

Bytes::Bytes(std::size_t size) : size_bytes(size) {
  if (size > Messages::max_packet_bytes)
    large = device::Buffer(size);
  else
    small = std::make_unique_for_overwrite<std::byte[]>(size);
}

Bytes::Bytes(std::span<const std::byte> from) : Bytes(from.size()) {
  std::copy(from.begin(), from.end(), span().begin());
}

void Pending::find_room(CallSlots& slots) {
  const auto room = static_cast<std::size_t>(reply_room());
  if (sizeof(CallHead) + header.size_bytes + payload.size() > Messages::max_packet_bytes) {
    payload_seen = transport::shared_location(payload);
    if (!payload_seen) payload_slot = slots.try_take(payload.size());
  }
  if (payload_slot) payload_slot.fill(payload);
  if (sizeof(ReplyHead) + room > Messages::max_packet_bytes) {
    // The reply that a procedure writes must not overwrite the payload that it still reads.
    if (!options.reply.empty() && !overlap(payload, options.reply))
      reply_seen = transport::shared_location(options.reply);
    if (!reply_seen) reply_slot = slots.try_take(room);
  }
}

void Pending::settle() noexcept {
  if (reply_placed && reply_slot) std::copy_n(reply_slot.data(), came.size(), came.data());
  payload_slot.clear();
  reply_slot.clear();
}

Protocol::Peer& Protocol::peer(int process) {
  return peers_.try_emplace(process, Peer{.credits = limits_.credits_at_first}).first->second;
}

std::uint32_t Protocol::next_tag(int process) {
  auto& next = peer(process).next_tag;
  return std::exchange(next, (next + 1) % (Messages::max_tag + 1));
}

std::uint64_t Protocol::begin_transfer(Transfer transfer) {
  const std::uint64_t token = next_token_++;
  transfers_.emplace(token, std::move(transfer));
  return token;
}

// ---- at the caller ----

void Protocol::call(std::shared_ptr<Pending> pending) {
  const int target = pending->target;
  Peer& to = peer(target);
  if (to.lost) {
    finish(std::move(pending), *to.lost);
    return;
  }
  to.waiting.push_back(std::move(pending));
  ++waiting_;
  launch_waiting(target);
}

void Protocol::launch_waiting(int process) {
  Peer& to = peer(process);
  while (!to.waiting.empty() && to.in_flight < to.credits) {
    const auto pending = std::move(to.waiting.front());
    to.waiting.pop_front();
    --waiting_;
    ++to.in_flight;
    launch(process, pending);
  }
}

void Protocol::launch(int process, const std::shared_ptr<Pending>& pending) {
  CallHead head;
  head.header_bytes = static_cast<std::uint16_t>(pending->header.size_bytes);
  head.procedure = pending->procedure;
  head.number = pending->number = next_number_++;
  head.payload_bytes = static_cast<std::int64_t>(pending->payload.size());
  head.max_reply_bytes = pending->reply_room();
  if (pending->payload_slot) head.payload_at = pending->payload_slot.offset();
  if (pending->reply_slot) head.reply_at = pending->reply_slot.offset();
  const Seen seen{.payload = pending->payload_seen.value_or(transport::nowhere),
                  .reply = pending->reply_seen.value_or(transport::nowhere)};
  head.seen = pending->payload_seen || pending->reply_seen ? 1 : 0;
  const auto more = head.seen != 0 ? bytes_of(seen) : std::span<const std::byte>();
  const bool sent = !pending->payload_slot && !pending->payload_seen;
  head.bulk = sent && sizeof head + more.size() + pending->header.size_bytes + pending->payload.size() >
                          Messages::max_packet_bytes;
  if (head.bulk || pending->payload_seen) head.tag = pending->tag = next_tag(process);
  pending->legs = 1;
  pending_.emplace(head.number, pending);
  const auto payload = head.bulk || !sent ? std::span<const std::byte>() : pending->payload;
  outlet_.send(process, {bytes_of(head), more, pending->header.span(), payload});
  if (head.bulk) send_payload(pending);
}

void Protocol::send_payload(const std::shared_ptr<Pending>& pending) {
  ++pending->legs;
  outlet_.send_bulk(pending->target, pending->tag, pending->payload,
                    begin_transfer({.peer = pending->target, .pending = pending}));
}

void Protocol::want_arrived(std::span<const std::byte> packet) {
  const auto found = pending_.find(head_of<WantHead>(packet).number);
  if (found != pending_.end()) send_payload(found->second);
}

void Protocol::reply_arrived(int from, std::span<const std::byte> packet) {
  const auto head = head_of<ReplyHead>(packet);
  Peer& to = peer(from);
  if (!head.yielded) --to.in_flight;
  to.credits = head.credits;
  const auto found = pending_.find(head.number);
  if (found == pending_.end()) return launch_waiting(from);  // given up
  const auto pending = found->second;
  const auto body = packet.subspan(sizeof head);
  if (head.errno_value != 0) {
    pending->failure = transport::error_from(body);
  } else {
    const auto size = static_cast<std::size_t>(head.size_bytes);
    auto into = pending->options.reply;
    if (into.empty() && size > 0) try {
        pending->own_reply = Bytes(size);
        into = pending->own_reply.span();
      } catch (...) {
        pending->failure = no_memory("take the reply of a call", head.size_bytes);
      }
    pending->came = into.first(std::min(size, into.size()));
    pending->reply_placed = head.placed;
    if (head.bulk) {
      ++pending->legs;
      outlet_.receive_bulk(from, head.tag, pending->came, begin_transfer({.peer = from, .pending = pending}));
    } else if (!head.placed && !pending->failure) {
      std::copy(body.begin(), body.end(), pending->came.begin());
    }
  }
  leg_done(pending);
  launch_waiting(from);
}

void Protocol::credit_arrived(int from, std::span<const std::byte> packet) {
  Peer& to = peer(from);
  --to.in_flight;
  to.credits = head_of<CreditHead>(packet).credits;
  launch_waiting(from);
}

void Protocol::leg_done(const std::shared_ptr<Pending>& pending) {
  if (--pending->legs > 0 || pending_.erase(pending->number) == 0) return;
  if (pending->failure) pending->came = {};
  outlet_.complete(pending);
}

void Protocol::abandon(const std::shared_ptr<Pending>& pending, const Error& error) {
  if (pending_.erase(pending->number) > 0) finish(pending, error);
}

void Protocol::finish(std::shared_ptr<Pending> pending, const Error& error) {
  if (pending->legs > 0) {  // the other side has not released it
    pending->payload_slot.forfeit();
    pending->reply_slot.forfeit();
  }
  pending->failure = error;
  pending->came = {};
  outlet_.complete(std::move(pending));
}

std::shared_ptr<Pending> Protocol::waiting_for(int process, std::size_t at_least) const {
  const auto found = peers_.find(process);
  if (found == peers_.end() || found->second.waiting.size() < std::max<std::size_t>(at_least, 1))
    return nullptr;
  return found->second.waiting.front();
}

std::vector<int> Protocol::targets() const {
  std::vector<int> found;
  for (const auto& [process, to] : peers_)
    if (to.in_flight > 0 || !to.waiting.empty()) found.push_back(process);
  return found;
}

void Protocol::lost(int process, const Error& error) {
  Peer& to = peer(process);
  if (to.lost) return;
  to.lost = error;
  std::vector<std::shared_ptr<Pending>> gone;
  for (const auto& [number, pending] : pending_)
    if (pending->target == process) gone.push_back(pending);
  std::sort(gone.begin(), gone.end(), [](const auto& a, const auto& b) { return a->number < b->number; });
  for (const auto& pending : gone) abandon(pending, error);
  to.in_flight = 0;
  waiting_ -= to.waiting.size();
  for (auto& pending : std::exchange(to.waiting, {})) finish(std::move(pending), error);

  std::erase_if(transfers_, [&](const auto& each) {
    const Transfer& transfer = each.second;
    if (transfer.peer == process && transfer.arriving) end(*transfer.arriving);
    return transfer.peer == process;
  });
  std::erase_if(arrivals_, [&](const Arrival& arrival) {
    if (arrival.served->caller != process) return false;
    held_bytes_ += static_cast<std::int64_t>(arrival.served->payload.size_bytes);  // as if it had arrived
    end(*arrival.served);
    return true;
  });
  receive_payloads();
}

// ---- at the target ----

void Protocol::packet(int from, std::span<const std::byte> packet) {
  if (peer(from).lost) return;
  switch (head_of<Kind>(packet)) {
    case Kind::call:
      return call_arrived(from, packet);
    case Kind::reply:
      return reply_arrived(from, packet);
    case Kind::credit:
      return credit_arrived(from, packet);
    case Kind::want:
      return want_arrived(packet);
  }
}

void Protocol::call_arrived(int from, std::span<const std::byte> packet) {
  const auto head = head_of<CallHead>(packet);
  auto served = std::make_shared<Served>();
  served->caller = from;
  served->number = head.number;
  served->procedure = head.procedure;
  served->max_reply_bytes = head.max_reply_bytes;
  auto rest = packet.subspan(sizeof head);
  Seen seen;
  if (head.seen != 0) {
    seen = head_of<Seen>(rest);
    rest = rest.subspan(sizeof seen);
  }
  served->header = Bytes(rest.first(head.header_bytes));
  rest = rest.subspan(head.header_bytes);
  served->bulk = head.bulk;
  const auto placed = [&](std::int32_t at, std::int64_t size) {
    return outlet_.common(from).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
  };
  const auto reply_bytes = static_cast<std::size_t>(head.max_reply_bytes);
  if (head.reply_at >= 0)
    served->room = placed(head.reply_at, head.max_reply_bytes);
  else if ((served->seen_room = outlet_.see(seen.reply, reply_bytes)))
    served->room = {served->seen_room.get(), reply_bytes};
  const auto payload_bytes = static_cast<std::size_t>(head.payload_bytes);
  const bool is_seen = seen.payload.offset >= 0;
  if (is_seen && !(served->seen_payload = outlet_.see(seen.payload, payload_bytes))) {
    const WantHead want{.number = head.number};
    outlet_.send(from, {bytes_of(want)});
    served->bulk = true;
  }
  ++served_;
  if (++peer(from).served == 1) ++callers_;
  if (served->bulk) {
    served->payload.size_bytes = payload_bytes;
    arrivals_.push_back({std::move(served), head.tag});
    receive_payloads();
  } else if (is_seen || head.payload_at >= 0) {
    served->payload.lent =
        is_seen ? served->seen_payload.get() : placed(head.payload_at, head.payload_bytes).data();
    served->payload.size_bytes = payload_bytes;
    outlet_.serve(std::move(served));
  } else {
    served->payload = Bytes(rest);
    outlet_.serve(std::move(served));
  }
}

/// Takes payloads in order of arrival, while there is memory for them.
void Protocol::receive_payloads() {
  while (!arrivals_.empty()) {
    const auto size = static_cast<std::int64_t>(arrivals_.front().served->payload.size_bytes);
    if (held_bytes_ > 0 && held_bytes_ + size > limits_.max_held_bytes) return;
    const Arrival arrival = std::move(arrivals_.front());
    arrivals_.pop_front();
    held_bytes_ += size;
    const auto& served = arrival.served;
    std::optional<Error> failure;
    std::span<std::byte> into;  // empty if there is no memory, so that the caller may release its payload
    try {
      served->payload = Bytes(static_cast<std::size_t>(size));
      into = served->payload.span();
    } catch (...) {
      failure = no_memory("take the payload of a call", size);
    }
    outlet_.receive_bulk(
        served->caller, arrival.tag, into,
        begin_transfer({.peer = served->caller, .arriving = served, .failure = std::move(failure)}));
  }
}

void Served::let_go() noexcept {
  for (auto* each : {&seen_payload, &seen_room})
    if (*each && transport::is_foreign(each->get())) each->reset();
}

std::span<const std::byte> Served::put_into_room(std::span<const std::byte> reply) const noexcept {
  const bool fits_packet = sizeof(ReplyHead) + reply.size() <= Messages::max_packet_bytes;
  if (fits_packet || reply.size() > room.size() || reply.data() == room.data()) return reply;
  // As bulk data, which saves a copy: replies in memory that the caller sees, and large ones.
  if (reply.size() > CallSlots::unit_bytes || transport::shared_location(reply)) return reply;
  std::copy(reply.begin(), reply.end(), room.begin());
  return room.first(reply.size());
}

void Protocol::answer(const Served& served, std::span<const std::byte> bytes,
                      std::shared_ptr<const void> keeper) {
  if (static_cast<std::int64_t>(bytes.size()) <= served.max_reply_bytes) {
    reply(served, bytes, 0, std::move(keeper));
    return;
  }
  fail(served, Error(EMSGSIZE,
                     {.attempted = "reply",
                      .size_bytes = static_cast<std::int64_t>(bytes.size()),
                      .detail = "the caller has room for " + std::to_string(served.max_reply_bytes)},
                     rank_));
}

void Protocol::fail(const Served& served, const Error& error) {
  reply(served, short_bytes(error), error.errno_value() == 0 ? no_errno : error.errno_value(), nullptr);
}

std::uint16_t Protocol::credits() const noexcept {
  return static_cast<std::uint16_t>(
      std::clamp(limits_.max_served / std::max(callers_, 1), 1, limits_.max_credits));
}

void Protocol::yield(Served& served) {
  if (std::exchange(served.yielded, true) || peer(served.caller).lost) return;
  const CreditHead head{.credits = credits()};
  outlet_.send(served.caller, {bytes_of(head)});
}

void Protocol::end(const Served& served) {
  --served_;
  if (--peer(served.caller).served == 0) --callers_;
  if (served.bulk) held_bytes_ -= static_cast<std::int64_t>(served.payload.size_bytes);
}

void Protocol::reply(const Served& served, std::span<const std::byte> bytes, int errno_value,
                     std::shared_ptr<const void> keeper) {
  if (peer(served.caller).lost) {
    end(served);
    receive_payloads();
    return;
  }
  ReplyHead head;
  head.errno_value = errno_value;
  head.number = served.number;
  head.size_bytes = static_cast<std::int64_t>(bytes.size());
  head.placed = !bytes.empty() && bytes.data() == served.room.data();
  head.bulk = !head.placed && sizeof head + bytes.size() > Messages::max_packet_bytes;
  head.yielded = served.yielded;
  head.credits = credits();
  if (head.bulk) head.tag = next_tag(served.caller);
  outlet_.send(served.caller,
               {bytes_of(head), head.bulk || head.placed ? std::span<const std::byte>() : bytes});
  if (head.bulk) {
    if (!keeper) {
      auto copy = std::make_shared<Bytes>(bytes);
      bytes = copy->span();
      keeper = std::move(copy);
    }
    outlet_.send_bulk(served.caller, head.tag, bytes,
                      begin_transfer({.peer = served.caller, .keeper = std::move(keeper)}));
  }
  end(served);
  receive_payloads();
}

void Protocol::bulk_done(std::uint64_t token, int errno_value) {
  const auto found = transfers_.find(token);
  if (found == transfers_.end()) return;  // with a process that has died
  const Transfer transfer = std::move(found->second);
  transfers_.erase(found);
  if (transfer.pending) {
    if (errno_value != 0 && !transfer.pending->failure)
      abandon(transfer.pending, errno_value == ECONNRESET
                                    ? died(transfer.peer)
                                    : Error(errno_value, {.attempted = "exchange data with process " +
                                                                       std::to_string(transfer.peer)}));
    else
      leg_done(transfer.pending);
  } else if (transfer.arriving) {
    if (transfer.failure)
      fail(*transfer.arriving, Error(transfer.failure->errno_value(), transfer.failure->context(), rank_));
    else if (errno_value != 0)
      fail(*transfer.arriving, Error(errno_value, {.attempted = "receive the payload of a call"}, rank_));
    else
      outlet_.serve(transfer.arriving);
  }
}

}  // namespace outcore::gpc
