#include "transport/death_watch.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/start_thread.hpp"
#include "transport/host.hpp"

namespace outcore::transport {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds look_every{250}, grace{5000}, abort_within{2000};

/// Does nothing if the system has no further thread.
std::thread try_thread(const char* name, std::function<void()> body) noexcept {
  try {
    return start_thread(name, std::move(body));
  } catch (const Error&) {
    return {};
  }
}

std::string place_of(int process) {
  return "/proc/" + std::to_string(process);
}

std::vector<int> children(int process) {
  std::vector<int> found;
  std::error_code gone;
  for (const auto& thread : std::filesystem::directory_iterator(place_of(process) + "/task", gone)) {
    std::ifstream file(thread.path() / "children");
    found.insert(found.end(), std::istream_iterator<int>(file), {});
  }
  return found;
}

/// The initial environment of a process: "\0NAME=value\0NAME=value\0".
std::string environment_of(int process) {
  std::ifstream file(place_of(process) + "/environ");
  return '\0' + std::string(std::istreambuf_iterator<char>(file), {});
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The processes that the launcher has started on this host.
class Beside {
 public:
  Beside() {
    // In the first of these variables launchers (Open MPI; MPICH and Intel MPI) give the number of processes.
    // The second distinguishes processes that were started by MPI_Comm_spawn.
    for (const auto& [count, job] :
         {std::pair("OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"), std::pair("MPI_LOCALNRANKS", "")}) {
      const char* said = std::getenv(count);
      if (!said || holds(environment_of(launcher_), '\0' + std::string(count) + '=')) continue;
      count_ = static_cast<std::size_t>(std::max(0, std::atoi(said)));
      const char* const name = std::getenv(job);
      mark_ = '\0' + (name ? std::string(job) + '=' + name : std::string(count) + '=' + said) + '\0';
      return;
    }
  }

  bool one_has_ended() {
    if (count_ < 2) return false;
    const std::lock_guard guard(mutex_);
    const std::vector<int> now = children(launcher_);
    for (const int process : now)
      if (!is_of_job_.contains(process)) is_of_job_.emplace(process, holds(environment_of(process), mark_));
    return now.size() < count_ ||
           std::ranges::any_of(
               is_of_job_, [](const auto& each) { return each.second && !process_exists(each.first); });
  }

 private:
  const int launcher_ = getppid();
  std::size_t count_ = 0;
  std::string mark_;
  std::mutex mutex_;
  std::map<int, bool> is_of_job_;  // all children of the launcher seen so far
};

}  // namespace

bool one_beside_has_ended() {
  static auto* const beside = new Beside;  // never destroyed: threads may ask until the process ends
  return beside->one_has_ended();
}

void run_apart(const char* name, std::function<void()> body) noexcept {
  if (std::thread thread = try_thread(name, std::move(body)); thread.joinable()) thread.detach();
}

void look_after(const AwaitedCall& call) {
  for (milliseconds since_death{0}; since_death < grace;) {
    if (call.is_over(look_every)) return;
    since_death = call.one_is_dead() ? since_death + look_every : milliseconds{0};
  }
  std::fprintf(stderr, "outcore: a process of the job has died, for which %s waits; ending the job\n",
               call.name);
  if (call.abort) run_apart("outcore-abort", call.abort);
  if (!call.abort || !call.is_over(abort_within)) kill(getpid(), SIGKILL);
}

WatchedCall::WatchedCall(const char* name, std::function<bool()> one_is_dead, std::function<void()> abort)
    : thread_(try_thread("outcore-watch", [this, call = AwaitedCall{.name = name,
                                                                    .is_over = {},
                                                                    .one_is_dead = std::move(one_is_dead),
                                                                    .abort = std::move(abort)}]() mutable {
        call.is_over = [this](milliseconds time) {
          std::unique_lock lock(mutex_);
          return ended_.wait_for(lock, time, [this] { return over_; });
        };
        look_after(call);
      })) {}

WatchedCall::~WatchedCall() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace outcore::transport
