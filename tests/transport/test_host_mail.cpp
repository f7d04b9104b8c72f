// Mailboxes used by threads, and their errors. Messages by mail as a whole are tested by the conformance
// suite over MPI.
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "outcore/extend/transport.hpp"
#include "support/check.hpp"
#include "transport/host_mail.hpp"
#include "transport/host_wake_up.hpp"

using outcore::transport::HostMail;
using outcore::transport::Letter;
using outcore::transport::Mailbox;
using outcore::transport::Messages;

namespace {

std::span<const std::byte> bytes_of(const int& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// A letter and its sender; nothing if there is no letter.
std::optional<std::pair<int, int>> take(Mailbox& box, std::uint64_t& read) {
  Mailbox::Cell* const cell = box.look(read);
  if (!cell) return {};
  ++read;
  int value = 0;
  check::equal(cell->letter.size_bytes, sizeof value);
  std::memcpy(&value, cell->packet.data(), sizeof value);
  const int from = cell->letter.from;
  Mailbox::free(*cell);
  return std::pair(from, value);
}

bool put(Mailbox& box, int from, int value) {
  return box.put({.from = from, .size_bytes = sizeof value}, {bytes_of(value)});
}

}  // namespace

TEST("letters come out as they were put in, many times round") {
  const auto box = std::make_unique<Mailbox>();
  std::uint64_t read = 0;
  check::is_true(!take(*box, read), "nothing in an empty box");
  for (int first = 0; first < 5000; first += 50) {
    for (int i = 0; i < 50; ++i) check::is_true(put(*box, 3, first + i));
    for (int i = 0; i < 50; ++i) check::is_true(take(*box, read) == std::pair(3, first + i));
    check::is_true(!take(*box, read));
  }
}

TEST("a full box refuses, and takes letters again when some were read") {
  const auto box = std::make_unique<Mailbox>();
  std::uint64_t read = 0;
  int count = 0;
  while (put(*box, 0, count)) ++count;
  check::is_true(count >= 32, "as many as a process has calls outstanding");
  check::is_true(!put(*box, 0, -1));
  check::is_true(take(*box, read) == std::pair(0, 0));
  check::is_true(put(*box, 0, count));
  check::is_true(!put(*box, 0, -1));
  for (int i = 1; i <= count; ++i) check::is_true(take(*box, read) == std::pair(0, i));
}

TEST("letters of each of many writers keep their order, and none is lost") {
  constexpr int writers = 4, letters = 20'000;
  const auto box = std::make_unique<Mailbox>();
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer)
    threads.emplace_back([&, writer] {
      for (int i = 0; i < letters; ++i)
        while (!put(*box, writer, i)) std::this_thread::yield();
    });
  std::vector<int> next(writers, 0);
  std::uint64_t read = 0;
  bool in_order = true;
  while (read < std::uint64_t{writers} * letters) {
    const auto letter = take(*box, read);
    if (!letter) {
      std::this_thread::yield();
      continue;
    }
    in_order &= letter->second == next[static_cast<std::size_t>(letter->first)]++;
  }
  for (std::thread& thread : threads) thread.join();
  check::is_true(in_order);
}

/// Two letters come at about the same time: a thread that polls takes one and then does something else, while
/// the other thread is about to sleep.
TEST("who is about to sleep sees the letter behind one that is just taken") {
  struct Counting : Messages::Receiver {
    void packet(int, std::span<const std::byte>) override {}
    void bulk_done(std::uint64_t, int) override {}
  } receiver;
  constexpr int rounds = 20'000;
  const auto transport = outcore::transport::self();
  outcore::transport::HostWakeUp wake_up(*transport, sizeof(Mailbox));
  HostMail mail(*transport, wake_up);
  auto& box = *std::launder(reinterpret_cast<Mailbox*>(wake_up.memory(0)));
  std::mutex polling;
  const auto takes_one = [&] {
    const std::lock_guard lock(polling);
    int packets = 1;
    mail.poll(receiver, packets);
    return packets == 0;
  };
  std::atomic<int> taken{0};
  const auto round_ends = [&](int round) {
    for (++taken; taken < 2 * (round + 1);) std::this_thread::yield();
  };
  std::thread sender([&] {
    for (int i = 0; i < rounds; ++i) {
      for (int letter = 0; letter < 2; ++letter) {
        check::is_true(put(box, 0, i));
        wake_up.wake_sleeper(0);
      }
      while (taken < 2 * (i + 1)) std::this_thread::yield();
    }
  });
  std::thread poller([&] {
    for (int i = 0; i < rounds; ++i) {
      while (!takes_one()) std::this_thread::yield();
      round_ends(i);
    }
  });
  bool overslept = false;
  constexpr std::chrono::seconds timeout(2);
  for (int i = 0; i < rounds; ++i) {
    for (std::uint32_t seen = wake_up.wakes(); !takes_one(); seen = wake_up.wakes()) {
      const auto asleep = std::chrono::steady_clock::now();
      wake_up.sleep(seen, timeout, [&] { return mail.has_come(); });
      overslept |= std::chrono::steady_clock::now() - asleep >= timeout;
    }
    round_ends(i);
  }
  sender.join();
  poller.join();
  check::is_true(!overslept);
}

TEST("a sender hears that its data were taken, also when the receiver fails with them") {
  struct Failing : Messages::Receiver {
    std::vector<std::uint64_t> done;
    void packet(int, std::span<const std::byte>) override {}
    void bulk_done(std::uint64_t token, int) override {
      done.push_back(token);
      if (token == 8) throw std::bad_alloc();
    }
  } receiver;
  const auto transport = outcore::transport::self();
  outcore::transport::HostWakeUp wake_up(*transport, sizeof(Mailbox));
  HostMail mail(*transport, wake_up);
  const int data = 42;
  int into = 0, packets = 1;
  mail.receive_bulk(0, 1, std::as_writable_bytes(std::span(&into, 1)), 8);
  mail.send_bulk(0, 1, bytes_of(data), 7);
  check::throws<std::bad_alloc>([&] { mail.poll(receiver, packets); });
  check::equal(into, 42);
  mail.poll(receiver, packets);
  check::is_true(receiver.done == std::vector<std::uint64_t>{8, 7});
}

TEST("letters that find no room wait for it in their order, and keep nobody busy") {
  struct Counting : Messages::Receiver {
    int next = 0;
    void packet(int, std::span<const std::byte> packet) override {
      int value = 0;
      std::memcpy(&value, packet.data(), sizeof value);
      check::equal(value, next++);
    }
    void bulk_done(std::uint64_t, int) override {}
  } receiver;
  const auto transport = outcore::transport::self();
  outcore::transport::HostWakeUp wake_up(*transport, sizeof(Mailbox));
  HostMail mail(*transport, wake_up);
  constexpr int letters = 200;
  for (int i = 0; i < letters; ++i) mail.send(0, {bytes_of(i)});
  check::is_true(mail.wants_room());
  check::is_true(!mail.is_busy());
  for (int turn = 0; turn < letters && mail.wants_room(); ++turn) {
    int packets = 10;
    mail.poll(receiver, packets);
  }
  check::is_true(!mail.wants_room());
  int rest = letters;
  mail.poll(receiver, rest);
  check::equal(receiver.next, letters);
}

TEST_MAIN
