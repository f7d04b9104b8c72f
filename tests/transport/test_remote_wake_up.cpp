// Wake-ups between hosts: here all processes are on one host, and wake one another through its network.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "outcore/extend/transport.hpp"
#include "support/check.hpp"
#include "transport/remote_wake_up.hpp"

using outcore::transport::RemoteWakeUp;
using namespace std::chrono_literals;

namespace {

/// Processes 0 and 1.
struct Two {
  RemoteWakeUp first, second;
  Two() {
    const std::array all{first.address(), second.address()};
    first.meet(all, 0);
    second.meet(all, 1);
  }
};

struct Count {
  std::atomic<int> wakes{0};
  RemoteWakeUp::Listener listener;
  Count(RemoteWakeUp& wake_up, RemoteWakeUp::Reason reason)
      : listener(wake_up, reason, [this] { ++wakes; }) {}

  bool reaches(int wanted) const {
    for (int turn = 0; turn < 5000 && wakes < wanted; ++turn) std::this_thread::sleep_for(1ms);
    return wakes >= wanted;
  }
};

/// Sends a datagram that comes from neither of the two.
void send_stranger(const RemoteWakeUp& to, std::size_t size_bytes) {
  const std::array<std::byte, 64> nonsense{};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = to.address().hosts[0];
  address.sin_port = to.address().port;
  const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
  check::equal(sendto(socket, nonsense.data(), size_bytes, 0, reinterpret_cast<const sockaddr*>(&address),
                      sizeof address),
               static_cast<ssize_t>(size_bytes));
  close(socket);
}

}  // namespace

TEST("a wake-up is heard by those who listen for its reason, at the process that is woken") {
  Two two;
  Count messages(two.second, RemoteWakeUp::Reason::messages),
      memory(two.second, RemoteWakeUp::Reason::memory), own(two.first, RemoteWakeUp::Reason::messages);
  two.first.wake(1, RemoteWakeUp::Reason::messages);
  check::is_true(messages.reaches(1));
  two.first.wake(1, RemoteWakeUp::Reason::memory);
  check::is_true(memory.reaches(1));
  check::equal(messages.wakes.load(), 1);
  check::equal(own.wakes.load(), 0);
}

TEST("who was woken or met just now is not woken again, later it is") {
  Two two;
  Count count(two.second, RemoteWakeUp::Reason::messages), memory(two.second, RemoteWakeUp::Reason::memory);
  std::this_thread::sleep_for(10ms);
  const auto begin = std::chrono::steady_clock::now();
  two.first.met(1, RemoteWakeUp::Reason::messages);
  for (int i = 0; i < 10; ++i) two.first.wake(1, RemoteWakeUp::Reason::messages);
  const bool quick = std::chrono::steady_clock::now() - begin < 2ms;
  two.first.wake(1, RemoteWakeUp::Reason::memory);  // they arrive in their order
  check::is_true(memory.reaches(1));
  if (quick) check::equal(count.wakes.load(), 0);
  std::this_thread::sleep_for(10ms);
  two.first.wake(1, RemoteWakeUp::Reason::messages);
  check::is_true(count.reaches(1));
}

TEST("strangers are not heard, and do not keep others from being heard") {
  Two two;
  Count count(two.second, RemoteWakeUp::Reason::messages);
  for (const std::size_t size : {0, 8, 16, 64}) send_stranger(two.second, size);
  two.first.wake(1, RemoteWakeUp::Reason::messages);
  check::is_true(count.reaches(1));
  std::this_thread::sleep_for(10ms);
  two.first.wake(1, RemoteWakeUp::Reason::messages);
  check::is_true(count.reaches(2));
  check::equal(count.wakes.load(), 2);
}

TEST("nothing is heard when a listener has gone, and a process without network is left alone") {
  Two two;
  {
    Count gone(two.second, RemoteWakeUp::Reason::messages);
    two.first.wake(1, RemoteWakeUp::Reason::messages);
    check::is_true(gone.reaches(1));
  }
  std::this_thread::sleep_for(10ms);
  two.first.wake(1, RemoteWakeUp::Reason::messages);
  RemoteWakeUp alone;
  const std::array all{alone.address(), RemoteWakeUp::Address{}};
  alone.meet(all, 0);
  check::is_true(alone.alive(1));
  alone.wake(1, RemoteWakeUp::Reason::messages);
}

TEST("who has answered, and is not there any more, has died; who never answered may be behind a firewall") {
  RemoteWakeUp first;
  auto second = std::make_unique<RemoteWakeUp>();
  auto silent = std::make_unique<RemoteWakeUp>();
  const std::array all{first.address(), second->address(), silent->address()};
  first.meet(all, 0);
  second->meet(all, 1);
  silent->meet(all, 2);
  const Count hears(first, RemoteWakeUp::Reason::messages);
  {
    const Count answers(*second, RemoteWakeUp::Reason::messages);
    first.wake(1, RemoteWakeUp::Reason::messages);
    check::is_true(answers.reaches(1));
    std::this_thread::sleep_for(50ms);
    check::is_true(first.alive(1));
  }
  second.reset();
  silent.reset();
  const auto is_found = [&](int process) {
    for (int turn = 0; turn < 300; ++turn, std::this_thread::sleep_for(10ms))
      if (!first.alive(process)) return true;
    return false;
  };
  check::is_true(is_found(1));
  for (int turn = 0; turn < 20; ++turn, std::this_thread::sleep_for(10ms)) check::is_true(first.alive(2));
  first.wake(1, RemoteWakeUp::Reason::messages);  // nobody is there, and nothing happens
  first.wake(2, RemoteWakeUp::Reason::messages);
}

TEST_MAIN
