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

/// There is nobody to tell that the system has no thread: then nobody watches.
template <class Body>
std::thread try_thread(const char* name, Body body) noexcept {
  try {
    return start_thread(name, std::move(body));
  } catch (const Error&) {
    return {};
  }
}

void detach(std::thread thread) noexcept {
  if (thread.joinable()) thread.detach();
}

/// Never destroyed: its thread may be there until the process ends.
struct Watch {
  std::mutex mutex;
  std::set<int> processes;
  AtFinalize at_finalize{[this] {
    detach(try_thread("outcore-finalize", [this] {
      look("MPI_Finalize", [](milliseconds time) {
        std::this_thread::sleep_for(time);
        return finalize_is_over();
      });
    }));
  }};

  static Watch& instance() {
    static auto* const watch = new Watch;
    return *watch;
  }

  /// Until `is_over`, which waits for so long; ends the job if a process has died some time ago.
  template <class Over>
  void look(const char* call, const Over& is_over) {
    for (milliseconds since_death{0}; since_death < grace;) {
      if (is_over(look_every)) return;
      if (since_death.count() > 0 || one_is_dead()) since_death += look_every;
    }
    std::fprintf(stderr, "outcore: a process of the job has died, for which %s waits; ending the job\n",
                 call);
    // MPI may keep the lock that MPI_Abort needs.
    detach(try_thread("outcore-abort", [] { MPI_Abort(MPI_COMM_WORLD, 1); }));
    if (!is_over(abort_within)) kill(getpid(), SIGKILL);
  }

  bool one_is_dead() {
    const std::lock_guard guard(mutex);
    return !std::ranges::all_of(processes, process_exists);
  }
};

}  // namespace

void watch_in_finalize(std::span<const int> processes) {
  Watch& watch = Watch::instance();
  const std::lock_guard guard(watch.mutex);
  watch.processes.insert(processes.begin(), processes.end());
}

WatchedCall::WatchedCall(const char* call)
    : thread_(try_thread("outcore-watch", [this, call] {
        Watch::instance().look(call, [this](milliseconds time) {
          std::unique_lock lock(mutex_);
          return ended_.wait_for(lock, time, [this] { return over_; });
        });
      })) {}

WatchedCall::~WatchedCall() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace outcore::transport::over_mpi
