#include "transport/mpi/finalize_watch.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "transport/host.hpp"
#include "transport/mpi/calls.hpp"

namespace outcore::transport::over_mpi {
namespace {

/// Never destroyed: its thread may run until the process ends.
struct Watch {
  std::mutex mutex;
  std::set<int> processes;
  AtFinalize at_finalize{[this] {
    run_apart("outcore-finalize", [this] {
      look_after({.name = "MPI_Finalize",
                  .is_over =
                      [](std::chrono::milliseconds time) {
                        std::this_thread::sleep_for(time);
                        return finalize_is_over();
                      },
                  .one_is_dead = [this] { return one_is_dead() || one_beside_has_ended(); },
                  .abort = abort_job});
    });
  }};

  static Watch& instance() {
    static auto* const watch = new Watch;
    return *watch;
  }

  bool one_is_dead() {
    const std::lock_guard guard(mutex);
    return !std::ranges::all_of(processes, process_exists);
  }
};

}  // namespace

void abort_job() {
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void watch_in_finalize() {
  Watch::instance();
}

void watch_in_finalize(std::span<const int> processes) {
  Watch& watch = Watch::instance();
  const std::lock_guard guard(watch.mutex);
  watch.processes.insert(processes.begin(), processes.end());
}

WatchedMpiCall::WatchedMpiCall(const char* name)
    : WatchedCall(name, [] { return Watch::instance().one_is_dead(); }, abort_job) {}

}  // namespace outcore::transport::over_mpi
