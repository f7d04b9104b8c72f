#include "transport/mpi/finalize_watch.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <set>
#include <thread>

#include "base/start_thread.hpp"
#include "transport/host.hpp"
#include "transport/mpi/calls.hpp"

namespace outcore::transport::over_mpi {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds look_every{250}, grace{5000}, abort_within{2000};

/// Never destroyed: its thread may be there until the process ends.
struct Watch {
  std::mutex mutex;
  std::set<int> processes;
  AtFinalize at_finalize{[this] { start_thread("outcore-finalize", [this] { run(); }).detach(); }};

  void run() {
    for (milliseconds since_death{0}; since_death < grace; std::this_thread::sleep_for(look_every)) {
      if (finalized()) return;
      if (since_death.count() > 0 || one_is_dead()) since_death += look_every;
    }
    std::fputs("outcore: a process of the job has died, for which MPI_Finalize waits; ending the job\n",
               stderr);
    // MPI_Finalize may keep the lock that MPI_Abort needs.
    start_thread("outcore-abort", [] { MPI_Abort(MPI_COMM_WORLD, 1); }).detach();
    std::this_thread::sleep_for(abort_within);
    if (!finalized()) kill(getpid(), SIGKILL);
  }

  bool one_is_dead() {
    const std::lock_guard guard(mutex);
    return !std::ranges::all_of(processes, process_exists);
  }
};

}  // namespace

void watch_in_finalize(std::span<const int> processes) {
  static auto* const watch = new Watch;
  const std::lock_guard guard(watch->mutex);
  watch->processes.insert(processes.begin(), processes.end());
}

}  // namespace outcore::transport::over_mpi
