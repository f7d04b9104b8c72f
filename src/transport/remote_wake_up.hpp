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

/// MPI cannot wake who sleeps until something comes, and who looks all the time takes a core. So who sends
/// something to a process that may be asleep wakes it as well. A wake-up carries nothing and may be lost, as
/// where a firewall stops it: whoever can be woken looks now and then all the same.
///
/// Who has answered a wake-up once, and whose host then refuses them again and again, while nothing else
/// comes from there, has died: nobody listens any more.
///
/// All but `meet`: any thread.
/// Measured: [M31].
class OUTCORE_SIBLING RemoteWakeUp {
 public:
  /// What others have to know to wake this process. Plain bytes.
  struct Address {
    std::array<std::uint32_t, 4> hosts{};  ///< IPv4, in network order; 0 is none
    std::uint64_t word = 0;                ///< wake-ups that do not say it come from strangers
    std::uint16_t port = 0;
  };

  /// Without a network there is nobody to wake, and nobody can.
  RemoteWakeUp();
  ~RemoteWakeUp();
  RemoteWakeUp(const RemoteWakeUp&) = delete;
  RemoteWakeUp& operator=(const RemoteWakeUp&) = delete;

  [[nodiscard]] const Address& address() const noexcept { return mine_; }
  /// Those of all processes, in the order of their ranks; the word is that of the first who can be
  /// woken. `rank`: of this process. Once, before the rest.
  void meet(std::span<const Address> all, int rank);

  /// What is on its way: a message, or an operation on memory of a window.
  enum class Reason : std::uint16_t { messages, memory };

  /// Not if this was called, or `met`, less than 2 ms ago: who has had something to do looks often for a
  /// while.
  void wake(int process, Reason reason) noexcept;
  /// Something has come from there, where somebody is awake, then.
  void met(int process, Reason reason) noexcept;
  /// False if a process is known to have died. Asks it, for the next time.
  [[nodiscard]] bool alive(int process) noexcept;

  /// Calls `heard`, from a thread of its own, whenever this process is woken for that reason, as long as this
  /// lives.
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
    std::array<std::atomic<std::uint8_t>, 2> met{};  ///< for each reason when, in units of 2 ms
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
