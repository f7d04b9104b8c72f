// Ends a job in which a process waits for ever, in a call that it cannot leave, for another process that has
// died.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/sibling.hpp"

namespace outcore::transport {

/// Whether another process that the launcher of the job started on this host has ended: they are children of
/// one process. False if the launcher does not give their number, or if it started a script that started this
/// process.
[[nodiscard]] OUTCORE_SIBLING bool one_beside_has_ended();

/// A call that waits for other processes.
struct AwaitedCall {
  const char* name;                                        ///< kept by the caller
  std::function<bool(std::chrono::milliseconds)> is_over;  ///< sleeps for this time
  std::function<bool()> one_is_dead = one_beside_has_ended;
  std::function<void()> abort{};  ///< ends the job, if still possible; may wait for ever
};

/// Returns once the call has ended. If the call still waits five seconds after a process has died, ends the
/// job, or, if it cannot, this process (SIGKILL).
OUTCORE_SIBLING void look_after(const AwaitedCall& call);

/// Starts a detached thread of this name. Does nothing if the system has no further thread, as nobody could
/// be told.
OUTCORE_SIBLING void run_apart(const char* name, std::function<void()> body) noexcept;

/// While it lives, such a call runs in this thread, and another thread watches it.
class OUTCORE_SIBLING WatchedCall {
 public:
  explicit WatchedCall(const char* name, std::function<bool()> one_is_dead = one_beside_has_ended,
                       std::function<void()> abort = {});
  ~WatchedCall();
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

/// From now on MPI_Finalize of the MPI that this program has initialised is watched, as `mpi` does for the
/// processes of its communicator. Throws the errors of `mpi`.
OUTCORE_SIBLING void watch_in_finalize();

}  // namespace outcore::transport
