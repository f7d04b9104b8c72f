// The session that a transport over MPI shares with all transports split off it: a communicator for its
// service, and the thread that serves.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "transport/mpi/calls.hpp"
#include "transport/remote_wake_up.hpp"

namespace outcore::transport::over_mpi {

/// Over networks the MPI of the target carries out one-sided operations, and only inside calls of MPI. So
/// while there are windows, a thread calls MPI regularly: each 50 us after recent traffic, else up to 1 ms
/// apart. A process that waits for long wakes the other side by a datagram, and also sends it an empty
/// message, because the datagram may be lost (`poke`).
class Session {
 public:
  explicit Session(MPI_Comm comm);  ///< collective
  ~Session();                       ///< collective
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Starts the thread, if it does not run yet. Not to be called by two threads at once.
  void serve();
  void poke(int process) noexcept;  ///< rank in the communicator of the session; at most each 2 ms
  /// Wake-ups of the processes of the session's communicator.
  [[nodiscard]] RemoteWakeUp& remote_wake_up() noexcept { return remote_wake_up_; }
  /// Throws Error(ECONNRESET) if one of these processes (ranks in the communicator of the session) has died:
  /// MPI would let other processes wait for it for ever. From then on MPI is not called any more: transfers
  /// under way may go to memory that has another use by now. So MPI_Finalize ends the job.
  void watch(std::span<const int> processes);
  /// Whether a process is alive, as far as is known. Processes of the own host are observed, others are asked
  /// by datagrams; if these do not get through, they count as alive.
  [[nodiscard]] bool alive(int process);
  [[nodiscard]] bool broken() const noexcept { return broken_.load(std::memory_order_acquire); }
  void check_whole() const;  ///< throws the error that `watch` threw
  void traffic() noexcept { last_traffic_ns_.store(now_ns(), std::memory_order_relaxed); }

 private:
  [[nodiscard]] static std::int64_t now_ns() noexcept;
  void run();
  void meet_neighbours();
  bool receive();
  void stop() noexcept;
  void drain();

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::atomic<std::int64_t> last_traffic_ns_{0};
  std::vector<std::atomic<std::int64_t>> poked_ns_;
  std::vector<std::atomic<std::int64_t>> sent_;
  std::int64_t received_ = 0;  // used by one thread at a time

  RemoteWakeUp remote_wake_up_;
  std::unordered_map<int, int> neighbours_;  // of the own host: rank, process number
  std::atomic<bool> broken_{false};
  std::atomic<int> dead_{-1};  // the first dead process that was found
  std::optional<AtFinalize> abort_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false, woken_ = false;
  std::thread thread_;
  std::optional<RemoteWakeUp::Listener> listener_;
  std::optional<AtFinalize> at_finalize_;
};

}  // namespace outcore::transport::over_mpi
