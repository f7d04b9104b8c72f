#include "transport/mpi/session.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "base/start_thread.hpp"
#include "outcore/error.hpp"
#include "transport/host.hpp"
#include "transport/mpi/finalize_watch.hpp"
#include "transport/poll_backoff.hpp"

namespace outcore::transport::over_mpi {
namespace {

using std::chrono::microseconds;

constexpr microseconds min_nap{50}, max_nap{1000};
// The largest share of a core for checks whether MPI has work to do: [M25].
constexpr int idle_share = 80;
constexpr std::int64_t busy_ns = 4'000'000;  // after traffic, naps stay short for this time
constexpr std::int64_t poke_every_ns = 2'000'000;
constexpr int calls_when_busy = 8;  // a call moves as much as fits into a socket
constexpr int poke_tag = 1;

}  // namespace

std::int64_t Session::now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Session::Session(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Comm_idup(comm, &comm_, &request), "duplicate a communicator");
  wait(request, "duplicate a communicator");
  check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "set an error handler");
  int size = 0;
  check(MPI_Comm_size(comm_, &size), "ask for the size of a communicator");
  poked_ns_ = std::vector<std::atomic<std::int64_t>>(static_cast<std::size_t>(size));
  sent_ = std::vector<std::atomic<std::int64_t>>(static_cast<std::size_t>(size));
  meet_neighbours();
}

Session::~Session() {
  if (finalized() || broken()) {  // the thread has ended, and MPI must not be called
    stop();
    return;
  }
  stop();
  try {
    at_finalize_.reset();
    drain();
    MPI_Comm_free(&comm_);
  } catch (const Error&) {  // MPI has failed; no other process can be told
  }
}

/// Processes of one host see one another's process numbers, unless they are in separate containers. Others
/// can be sent wake-ups.
void Session::meet_neighbours() {
  struct Name {
    char host[352];
    std::int64_t pid;
    RemoteWakeUp::Address wake_up;
  };
  int rank = 0;
  check(MPI_Comm_rank(comm_, &rank), "ask for the rank");
  Name mine{.host = {}, .pid = getpid(), .wake_up = remote_wake_up_.address()};
  std::array<char, 64> container{};
  bool sees = readlink("/proc/self/ns/pid", container.data(), container.size() - 1) > 0;
  try {
    (host_name() + " " + container.data()).copy(mine.host, sizeof mine.host - 1);
  } catch (const Error&) {  // a world reports it to all processes
    sees = false;
  }
  std::vector<Name> all(sent_.size());
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, comm_, &request),
        "gather");
  wait(request, "gather");
  for (std::size_t i = 0; i < all.size(); ++i)
    if (sees && static_cast<int>(i) != rank && std::strcmp(all[i].host, mine.host) == 0)
      neighbours_.emplace(static_cast<int>(i), static_cast<int>(all[i].pid));
  std::vector<int> numbers;
  for (const auto& [process, number] : neighbours_) numbers.push_back(number);
  watch_in_finalize(numbers);
  std::vector<RemoteWakeUp::Address> addresses(all.size());
  std::ranges::transform(all, addresses.begin(), &Name::wake_up);
  remote_wake_up_.meet(addresses, rank);
}

bool Session::alive(int process) {
  const auto found = neighbours_.find(process);
  return found == neighbours_.end() ? remote_wake_up_.alive(process) : process_exists(found->second);
}

void Session::watch(std::span<const int> processes) {
  check_whole();
  for (const int process : processes) {
    if (alive(process)) continue;
    const std::lock_guard guard(mutex_);
    if (!broken()) {
      abort_.emplace([] { MPI_Abort(MPI_COMM_WORLD, 1); });
      dead_ = process;
      broken_.store(true, std::memory_order_release);
    }
    break;
  }
  check_whole();
}

void Session::check_whole() const {
  if (broken())
    throw Error(ECONNRESET, {.attempted = "wait for the other processes",
                             .detail = "process " + std::to_string(dead_) + " has died"});
}

void Session::serve() {
  if (!listener_)
    listener_.emplace(remote_wake_up_, RemoteWakeUp::Reason::memory, [this] {
      {
        const std::lock_guard heard(mutex_);
        woken_ = true;
      }
      wake_.notify_all();
    });
  const std::lock_guard guard(mutex_);
  if (thread_.joinable() || stopping_) return;
  at_finalize_.emplace([this] { stop(); });  // also of a program that forgets to close the world
  thread_ = start_thread("outcore-mpi", [this] { run(); });
}

void Session::stop() noexcept {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  listener_.reset();
}

void Session::run() {
  prctl(PR_SET_TIMERSLACK, 1000UL);
  microseconds nap = min_nap;
  PollBackoff backoff(idle_share);
  std::unique_lock lock(mutex_);
  while (!stopping_ && !broken()) {
    lock.unlock();
    if (receive()) traffic();
    const bool busy = now_ns() - last_traffic_ns_.load(std::memory_order_relaxed) < busy_ns;
    for (int call = 1; busy && call < calls_when_busy; ++call) (void)receive();
    const auto idle_nap = std::max(max_nap, backoff.nap());
    nap = busy ? min_nap : std::min(2 * nap, idle_nap);
    lock.lock();
    wake_.wait_for(lock, nap, [&] { return stopping_ || woken_; });
    if (std::exchange(woken_, false)) traffic();
  }
}

/// Takes the messages that have come. These calls also let MPI carry out operations of other processes.
bool Session::receive() {
  bool any = false;
  for (int here = 1; here;) {
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, poke_tag, comm_, &here, &status) != MPI_SUCCESS) return any;
    if (!here) break;
    if (MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, poke_tag, comm_, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      break;
    ++received_;
    any = true;
  }
  return any;
}

void Session::poke(int process) noexcept {
  if (broken()) return;
  auto& last = poked_ns_[static_cast<std::size_t>(process)];
  std::int64_t before = last.load(std::memory_order_relaxed);
  const std::int64_t now = now_ns();
  if (now - before < poke_every_ns || !last.compare_exchange_strong(before, now, std::memory_order_relaxed))
    return;
  remote_wake_up_.wake(process, RemoteWakeUp::Reason::memory);
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Isend(nullptr, 0, MPI_BYTE, process, poke_tag, comm_, &request) != MPI_SUCCESS) return;
  MPI_Request_free(&request);
  sent_[static_cast<std::size_t>(process)].fetch_add(1, std::memory_order_relaxed);
}

/// Receives messages that were sent and not taken yet, so that the communicator ends empty.
void Session::drain() {
  std::vector<std::int64_t> expected(sent_.begin(), sent_.end());
  int rank = 0;
  check(MPI_Comm_rank(comm_, &rank), "ask for the rank");
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallreduce(MPI_IN_PLACE, expected.data(), static_cast<int>(expected.size()), MPI_INT64_T, MPI_SUM,
                       comm_, &request),
        "end the service");
  wait(request, "end the service", [&] {
    std::vector<int> everybody(expected.size());
    std::iota(everybody.begin(), everybody.end(), 0);
    watch(everybody);
  });
  while (received_ < expected[static_cast<std::size_t>(rank)])
    if (!receive()) std::this_thread::sleep_for(min_nap);
}

}  // namespace outcore::transport::over_mpi
