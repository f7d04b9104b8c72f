// What the messages of every back-end must do; see conformance.hpp.
#pragma once

#include <atomic>
#include <chrono>
#include <map>

#include "conformance/transport.hpp"
#include "outcore/extend/messages.hpp"

namespace conformance {

/// Keeps everything that has arrived.
struct Inbox final : Messages::Receiver {
  void packet(int from, std::span<const std::byte> packet) override {
    packets[from].emplace_back(packet.begin(), packet.end());
    ++count;
    if (on_packet) on_packet(from);
  }
  void bulk_done(std::uint64_t token, int errno_value) override { done[token] = errno_value; }

  std::map<int, std::vector<std::vector<std::byte>>> packets;  // of each process, in order of arrival
  std::size_t count = 0;
  std::map<std::uint64_t, int> done;
  std::function<void(int from)> on_packet;
};

/// Polls, and waits between polls, until wanted() is true.
template <class Wanted>
void serve_until(Messages& messages, Inbox& inbox, const Wanted& wanted) {
  const auto start = std::chrono::steady_clock::now();
  while (!wanted()) {
    check::is_true(std::chrono::steady_clock::now() - start < std::chrono::seconds(60), "nothing comes");
    if (!messages.poll(inbox)) messages.wait(std::chrono::milliseconds(100));
  }
}

/// Bytes that depend on their positions and on `seed`, usually the rank of their maker.
inline std::vector<std::byte> pattern(std::size_t size_bytes, int seed) {
  std::vector<std::byte> values(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i)
    values[i] = static_cast<std::byte>((i * 31 + i / 251 + static_cast<std::size_t>(seed) * 7) % 256);
  return values;
}

/// Empty and full packets, also to the sender itself.
inline void packets_keep_their_order(Transport& transport) {
  constexpr int packets = 300;
  const auto messages = transport.messages();
  Inbox inbox;
  const auto size_of = [](int i) {
    return i % 7 == 0 ? 0 : static_cast<std::size_t>(i) * 131 % (Messages::max_packet_bytes + 1);
  };
  for (int i = 0; i < packets; ++i) {
    for (int to = 0; to < transport.size(); ++to) messages->send(to, {pattern(size_of(i), i)});
    if (i % 10 == 0) (void)messages->poll(inbox);
  }
  messages->send(transport.rank(), {pattern(Messages::max_packet_bytes, 1)});
  serve_until(*messages, inbox,
              [&] { return inbox.count == static_cast<std::size_t>(packets * transport.size() + 1); });
  for (int from = 0; from < transport.size(); ++from)
    for (int i = 0; i < packets; ++i)
      check::is_true(inbox.packets[from][static_cast<std::size_t>(i)] == pattern(size_of(i), i));
  check::equal(inbox.packets[transport.rank()].back().size(), Messages::max_packet_bytes);
}

/// If two processes have common memory, each sees what the other has written to its own part.
inline void what_is_in_common_is_seen_alike(Transport& transport) {
  const auto messages = transport.messages();
  const auto size = static_cast<std::size_t>(transport.size());
  const auto own = messages->common(transport.rank());
  std::vector<std::byte> sees(size), all(size * size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto memory = messages->common(static_cast<int>(i));
    if (memory.empty()) continue;
    sees[i] = std::byte{1};
    check::equal(memory.size(), Messages::common_bytes);
    check::equal(reinterpret_cast<std::uintptr_t>(memory.data()) % 4096, 0U);
    check::is_true(std::ranges::all_of(memory, [](std::byte each) { return each == std::byte{0}; }));
  }
  transport.all_gather(sees, all);
  for (std::size_t i = 0; i < size; ++i)
    check::is_true(all[i * size + static_cast<std::size_t>(transport.rank())] == sees[i],
                   "only one sees the other");
  if (!own.empty()) std::ranges::copy(pattern(own.size(), transport.rank()), own.begin());
  transport.barrier();
  for (std::size_t i = 0; i < size; ++i) {
    const auto memory = messages->common(static_cast<int>(i));
    if (!memory.empty())
      check::is_true(std::ranges::equal(memory, pattern(memory.size(), static_cast<int>(i))));
  }
  transport.barrier();
}

/// Nobody polls before all packets are sent. Then a poll delivers no more than were asked for. All poll until
/// the receiver says that it has everything.
inline void more_packets_than_are_kept_are_not_lost(Transport& transport) {
  constexpr std::size_t packets = 10 * Messages::packets_at_once;
  const auto messages = transport.messages();
  Inbox inbox;
  for (std::size_t i = 0; i < packets; ++i) messages->send(0, {pattern(1000, static_cast<int>(i))});
  transport.barrier();
  const std::size_t expected =
      transport.rank() == 0 ? packets * static_cast<std::size_t>(transport.size()) : 1;
  serve_until(*messages, inbox, [&] {
    const std::size_t before = inbox.count;
    (void)messages->poll(inbox, 3);
    check::is_true(inbox.count - before <= 3, "more than were asked for");
    return inbox.count >= expected;
  });
  if (transport.rank() != 0) return;
  for (int other = 1; other < transport.size(); ++other) messages->send(other, {});
  for (const auto& [from, come] : inbox.packets)
    for (std::size_t i = 0; i < packets; ++i)
      check::is_true(come[i] == pattern(1000, static_cast<int>(i)), "out of order");
}

/// Each process sends to its neighbours; in one direction the send comes first, in the other the receive.
inline void bulk_meets_its_receive(Transport& transport) {
  const auto messages = transport.messages();
  const int next = (transport.rank() + 1) % transport.size();
  const int previous = (transport.rank() + transport.size() - 1) % transport.size();
  const std::size_t sizes[] = {0, 1, 5000, 300'000, 5'000'001};
  for (const bool send_first : {true, false})
    for (const std::size_t size : sizes) {
      Inbox inbox;
      const auto sent = pattern(size, transport.rank());
      std::vector<std::byte> got(size);
      if (send_first) messages->send_bulk(next, 5, sent, 1);
      if (!send_first) messages->receive_bulk(previous, 5, got, 2);
      transport.barrier();
      if (send_first) messages->receive_bulk(previous, 5, got, 2);
      if (!send_first) messages->send_bulk(next, 5, sent, 1);
      serve_until(*messages, inbox, [&] { return inbox.done.size() == 2; });
      check::equal(inbox.done.at(1), 0);
      check::equal(inbox.done.at(2), 0);
      check::is_true(got == pattern(size, previous), "other bytes than were sent");
      transport.barrier();
    }
}

/// From memory that both processes can load from, so that the receiver may copy it itself; also several parts
/// of it.
inline void bulk_comes_out_of_shared_memory(Transport& transport) {
  constexpr std::size_t size = 3'000'001, begin = 4097;
  const auto messages = transport.messages();
  const auto segment = transport.allocate(begin + size, true);
  const int next = (transport.rank() + 1) % transport.size();
  const int previous = (transport.rank() + transport.size() - 1) % transport.size();
  const auto whole = pattern(size, transport.rank()), part = pattern(size / 3, transport.rank());
  const auto sent = std::span(segment->local() + begin, size);
  std::copy(whole.begin(), whole.end(), sent.begin());
  std::vector<std::byte> got(size), got_part(size / 3);
  Inbox inbox;
  messages->receive_bulk(previous, 5, got, 1);
  messages->receive_bulk(previous, 6, got_part, 2);
  messages->send_bulk(next, 5, sent, 3);
  messages->send_bulk(next, 6, sent.first(part.size()), 4);
  serve_until(*messages, inbox, [&] { return inbox.done.size() == 4; });
  for (const auto& [token, errno_value] : inbox.done) check::equal(errno_value, 0);
  check::is_true(got == pattern(size, previous), "other bytes than were sent");
  check::is_true(std::equal(got_part.begin(), got_part.end(), got.begin()), "the part");
  transport.barrier();
}

/// Transfers between all pairs at once, more than one poll looks at, in different orders at both ends.
inline void tags_tell_transfers_apart(Transport& transport) {
  constexpr std::uint32_t transfers = 200, spread = Messages::max_tag / transfers;
  const auto messages = transport.messages();
  const auto size_of = [](std::uint32_t i) { return 100 + 40 * i; };
  const auto seed = [&](int from, std::uint32_t i) { return from * 1000 + static_cast<int>(i); };
  std::vector<std::vector<std::byte>> sent, got;
  sent.reserve(transfers * static_cast<std::size_t>(transport.size()));
  got.reserve(sent.capacity());
  std::uint64_t token = 0;
  for (int other = 0; other < transport.size(); ++other)
    for (std::uint32_t i = 0; i < transfers; ++i) {
      sent.push_back(pattern(size_of(i), seed(transport.rank(), i)));
      messages->send_bulk(other, i * spread, sent.back(), token++);
    }
  for (int other = 0; other < transport.size(); ++other)
    for (std::uint32_t i = transfers; i-- > 0;)
      messages->receive_bulk(other, i * spread, got.emplace_back(size_of(i)), token++);
  Inbox inbox;
  serve_until(*messages, inbox, [&] { return inbox.done.size() == token; });
  for (std::size_t k = 0; k < got.size(); ++k) {
    const auto i = transfers - 1 - static_cast<std::uint32_t>(k % transfers);
    check::is_true(got[k] == pattern(size_of(i), seed(static_cast<int>(k / transfers), i)), "mixed up");
  }
}

inline void a_receiver_may_send(Transport& transport) {
  constexpr std::size_t hops = 200;
  const auto messages = transport.messages();
  const int next = (transport.rank() + 1) % transport.size();
  Inbox inbox;
  inbox.on_packet = [&](int) {
    if (inbox.count < hops) messages->send(next, {});
  };
  messages->send(next, {});
  serve_until(*messages, inbox, [&] { return inbox.count == hops; });
}

/// A packet goes round, while processes without it sleep for far longer than the test may take.
inline void waiting_ends_when_something_comes(Transport& transport) {
  constexpr std::size_t rounds = 300;
  const auto messages = transport.messages();
  const std::chrono::microseconds longest =
      messages->is_told() ? std::chrono::seconds(300) : std::chrono::milliseconds(1);
  const int next = (transport.rank() + 1) % transport.size();
  Inbox inbox;
  for (std::size_t round = 0; round < rounds; ++round) {
    if (transport.rank() == 0) messages->send(next, {});
    while (inbox.count == round)
      if (!messages->poll(inbox)) messages->wait(longest);
    if (transport.rank() != 0) messages->send(next, {});
  }
  transport.barrier();
}

/// Also packets that this process sends to itself while another of its threads waits.
inline void what_comes_ends_a_wait_of_another_thread(Transport& transport) {
  const auto messages = transport.messages();
  Inbox inbox;
  for (std::size_t round = 0; messages->is_told() && round < 100; ++round) {
    std::thread waiting([&] { messages->wait(std::chrono::seconds(300)); });
    messages->send(transport.rank(), {pattern(8, 1)});
    waiting.join();
    serve_until(*messages, inbox, [&] { return inbox.count == round + 1; });
  }
  transport.barrier();
}

inline void wake_ends_a_wait(Transport& transport) {
  const auto messages = transport.messages();
  messages->wake();
  messages->wait(std::chrono::seconds(300));  // also if it came before
  std::atomic<int> waits{0};
  std::thread waiting([&] {
    for (; waits < 200; ++waits) messages->wait(std::chrono::seconds(300));
  });
  Inbox inbox;
  while (waits < 200) {
    messages->wake();
    (void)messages->poll(inbox);  // does not take it away from the other thread
    std::this_thread::yield();
  }
  waiting.join();
  transport.barrier();
}

inline void messages_do_not_mix_with_others(Transport& transport) {
  const auto first = transport.messages(), second = transport.messages();
  Inbox one, two;
  first->send(0, {pattern(10, 1)});
  second->send(0, {pattern(20, 2)});
  transport.barrier();
  const auto expected = transport.rank() == 0 ? static_cast<std::size_t>(transport.size()) : 0;
  serve_until(*second, two, [&] { return two.count == expected; });
  serve_until(*first, one, [&] { return one.count == expected; });
  for (const auto& [from, come] : one.packets) check::is_true(come.front() == pattern(10, 1));
  for (const auto& [from, come] : two.packets) check::is_true(come.front() == pattern(20, 2));
  transport.barrier();
}

inline void add_messages(const std::string& name, const Run& run, int count) {
  const auto test = [&](const std::string& what, const Body& body) {
    add_test(name, run, count, "messages: " + what, body);
  };
  test("packets keep their order", packets_keep_their_order);
  test("what is in common is seen alike", what_is_in_common_is_seen_alike);
  test("more packets than are kept are not lost", more_packets_than_are_kept_are_not_lost);
  test("bulk meets its receive", bulk_meets_its_receive);
  test("bulk comes out of shared memory", bulk_comes_out_of_shared_memory);
  test("tags tell transfers apart", tags_tell_transfers_apart);
  test("a receiver may send", a_receiver_may_send);
  test("waiting ends when something comes", waiting_ends_when_something_comes);
  test("what comes ends a wait of another thread", what_comes_ends_a_wait_of_another_thread);
  test("wake ends a wait", wake_ends_a_wait);
  test("messages do not mix with others", messages_do_not_mix_with_others);
}

}  // namespace conformance
