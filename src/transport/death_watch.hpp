// What ends a job in which a process waits for ever, in a call that cannot be left, for another that has
// died.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/sibling.hpp"

namespace outcore::transport {

/// Whether a process has ended that the launcher of the job started on this host beside this one: they are
/// children of one process. False where the launcher does not say how many they are, and where it started a
/// script that started this process.
[[nodiscard]] OUTCORE_SIBLING bool one_beside_has_ended();

/// A call that waits for other processes.
struct AwaitedCall {
  const char* name;                                        ///< kept by the caller
  std::function<bool(std::chrono::milliseconds)> is_over;  ///< waits for so long
  std::function<bool()> one_is_dead = one_beside_has_ended;
  std::function<void()> abort{};  ///< ends the job, if that is possible yet; may wait for ever
};

/// Returns once the call is over. If it still waits five seconds after a process has died, the job is ended,
/// or, where it cannot be, this process (SIGKILL).
OUTCORE_SIBLING void look_after(const AwaitedCall& call);

/// A thread of that name, detached. Nothing where the system has none: there is nobody to tell.
OUTCORE_SIBLING void run_apart(const char* name, std::function<void()> body) noexcept;

/// While it lives, such a call runs in this thread, and another one looks after it.
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

/// From now on MPI_Finalize is looked after, of the MPI that this program has initialised; as `mpi` does it
/// for the processes of its communicator. Throws what `mpi` throws.
OUTCORE_SIBLING void watch_in_finalize();

}  // namespace outcore::transport
