// Calls of MPI wait for all processes, for ever if one has died: MPI_Finalize, and what has no nonblocking
// form.
#pragma once

#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>

namespace outcore::transport::over_mpi {

/// From now on MPI_Finalize of this process ends the job if it still waits five seconds after one of these
/// processes of the own host (their numbers) has died. One that ends well leaves MPI_Finalize as all do.
void watch_in_finalize(std::span<const int> processes);

/// While it lives, a call of MPI that waits for others runs in this thread. It ends the job as MPI_Finalize
/// does.
class WatchedCall {
 public:
  explicit WatchedCall(const char* call);  ///< its name, kept by the caller
  ~WatchedCall();
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace outcore::transport::over_mpi
