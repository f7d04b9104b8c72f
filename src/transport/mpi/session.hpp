// What a transport over MPI has once, with all that is split off it: a communicator for its service, and the
// thread that serves.
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

/// Over networks one-sided operations are carried out by the MPI of the target, which does so only inside
/// calls of MPI. So while there are windows a thread calls it now and then: each 50 us while there has been
/// traffic, else up to 1 ms apart. Who waits for long wakes the other side, and tells it by a message without
/// content, too, because that datagram may be lost (`poke`).
class Session {
 public:
  explicit Session(MPI_Comm comm);  ///< collective
  ~Session();                       ///< collective
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Starts the thread, if it does not run yet; not by two threads at once.
  void serve();
  void poke(int process) noexcept;  ///< rank in the communicator of the session; at most each 2 ms
  /// Of the processes of the communicator of the session.
  [[nodiscard]] RemoteWakeUp& remote_wake_up() noexcept { return remote_wake_up_; }
  /// Throws Error(ECONNRESET) if one of these processes (ranks in the communicator of the session) has died:
  /// MPI would let those who wait for it wait forever. From then on MPI is not called any more: what is under
  /// way may be going to memory that has another use by now. So MPI_Finalize ends the job.
  void watch(std::span<const int> processes);
  /// Whether a process lives, as far as is known: those of the own host are seen, others are asked, and where
  /// no datagrams get through they count as alive.
  [[nodiscard]] bool alive(int process);
  [[nodiscard]] bool broken() const noexcept { return broken_.load(std::memory_order_acquire); }
  void check_whole() const;  ///< throws what `watch` threw
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
  std::int64_t received_ = 0;  // by one thread at a time

  RemoteWakeUp remote_wake_up_;
  std::unordered_map<int, int> neighbours_;  // of the own host: rank, process number
  std::atomic<bool> broken_{false};
  std::atomic<int> dead_{-1};  // the first that was found
  std::optional<AtFinalize> abort_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false, woken_ = false;
  std::thread thread_;
  std::optional<RemoteWakeUp::Listener> listener_;
  std::optional<AtFinalize> at_finalize_;
};

}  // namespace outcore::transport::over_mpi
