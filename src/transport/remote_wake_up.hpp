// How processes of different hosts wake one another: by a datagram.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/sibling.hpp"

namespace outcore::transport {

/// MPI cannot wake a process that sleeps until a message comes, and a process that polls takes a core. So a
/// sender also wakes a process that may be asleep. A wake-up carries no data and may be lost, for example in
/// a firewall, so processes that can be woken poll now and then all the same.
///
/// If a process has answered a wake-up once, and its host then repeatedly refuses wake-ups while nothing else
/// comes from there, the process has died: nobody listens any more.
///
/// Any thread may call all methods except `meet`. Measured: [M31].
class OUTCORE_SIBLING RemoteWakeUp {
 public:
  /// The data that others need to wake this process. Plain bytes.
  struct Address {
    std::array<std::uint32_t, 4> hosts{};  ///< IPv4, in network order; 0 is none
    std::uint64_t word = 0;                ///< a secret; wake-ups without it come from strangers
    std::uint16_t port = 0;
  };

  /// Without a network, no process can wake or be woken.
  RemoteWakeUp();
  ~RemoteWakeUp();
  RemoteWakeUp(const RemoteWakeUp&) = delete;
  RemoteWakeUp& operator=(const RemoteWakeUp&) = delete;

  [[nodiscard]] const Address& address() const noexcept { return mine_; }
  /// Passes the data of all processes, in order of rank; the secret is that of the first process that can be
  /// woken. `rank`: of this process. Once, before all other calls.
  void meet(std::span<const Address> all, int rank);

  /// The reason of a wake-up: a message, or an operation on memory of a window.
  enum class Reason : std::uint16_t { messages, memory };

  /// Wakes a process. Does nothing if this, or `met`, was called less than 2 ms ago, because a process polls
  /// often for a while after it had work.
  void wake(int process, Reason reason) noexcept;
  /// Call it when something has come from a process, which is awake, therefore.
  void met(int process, Reason reason) noexcept;
  /// False if a process is known to have died. Also sends it a question for the next call.
  [[nodiscard]] bool alive(int process) noexcept;

  /// As long as this object lives, its own thread calls `heard` whenever this process is woken for the given
  /// reason.
  class Listener {
   public:
    Listener(RemoteWakeUp& wake_up, Reason reason, std::function<void()> heard);
    ~Listener();  ///< waits for a call under way
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

   private:
    RemoteWakeUp& wake_up_;
    int number_;
  };

 private:
  struct Peer {
    std::uint32_t host = 0;  ///< 0: out of reach
    std::uint16_t port = 0;
    std::array<std::atomic<std::uint8_t>, 2> met{};  ///< for each reason the time, in units of 2 ms
    std::atomic<bool> answered{false};
    std::atomic<int> refusals{0};  ///< since something came from there
  };
  static constexpr Reason asks{2}, answers{3};  ///< nobody listens for these
  struct Datagram {
    std::uint64_t word = 0;
    Reason reason{};
    std::uint16_t wants_answer = 0;
    std::int32_t rank = -1;  ///< who wakes
  };

  [[nodiscard]] std::uint32_t way_to(const Address& its) const noexcept;
  void send(const Datagram& datagram, std::uint32_t host, std::uint16_t port) noexcept;
  void listen();
  void hear();
  void hear_refusals();

  int rank_ = -1;
  int socket_ = -1, stop_ = -1;
  Address mine_;
  std::array<std::uint32_t, 4> masks_{};  // of the networks of mine_.hosts
  std::vector<Peer> peers_;
  std::mutex mutex_;
  std::map<int, std::pair<Reason, std::function<void()>>> listeners_;
  int next_listener_ = 0;
  std::thread thread_;
};

}  // namespace outcore::transport
