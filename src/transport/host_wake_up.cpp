#include "transport/host_wake_up.hpp"

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "outcore/error.hpp"
#include "transport/host.hpp"
#include "transport/node_memory.hpp"

namespace outcore::transport {
namespace {

/// Shared between processes, hence not FUTEX_PRIVATE.
void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

/// Treats processes of one host as if they were on several, for tests.
bool each_its_own_node() {
  const char* nodes = std::getenv("OUTCORE_NODES");
  return nodes && std::strcmp(nodes, "processes") == 0;
}

}  // namespace

HostWakeUp::HostWakeUp(Transport& transport, std::size_t beside_bytes)
    : rank_(transport.rank()), words_(static_cast<std::size_t>(transport.size()), nullptr) {
  const std::string own = each_its_own_node() ? "#" + std::to_string(rank_) : "";
  const auto hosts = numbers_of_names(transport, transport.host() + own);
  const int host = hosts[static_cast<std::size_t>(rank_)];
  const auto neighbours = transport.split(host, rank_);
  words_[static_cast<std::size_t>(rank_)] = &alone_;
  try {
    shared_ = node_memory(*neighbours, sizeof(Word) + beside_bytes);
  } catch (const Error&) {  // at all of the host
  }
  if (shared_) {
    int place = 0;
    for (std::size_t i = 0; i < hosts.size(); ++i)  // zeroed memory means that the process was not woken
      if (hosts[i] == host) words_[i] = std::launder(reinterpret_cast<Word*>(shared_->direct(place++)));
  }
  mine().pid = getpid();
  reaches_all_ = std::find(words_.begin(), words_.end(), nullptr) == words_.end();
}

void HostWakeUp::wake(int process) noexcept {
  Word* word = words_[static_cast<std::size_t>(process)];
  if (!word) return;
  word->wakes.fetch_add(1);
  if (word->asleep.load() != 0) futex(word->wakes, FUTEX_WAKE, INT_MAX, nullptr);
}

void HostWakeUp::wake_sleeper(int process) noexcept {
  Word* word = words_[static_cast<std::size_t>(process)];
  if (!word || word->asleep.load() == 0) return;
  word->sleeper.leave_mine();  // this thread goes on
  wake(process);
}

std::byte* HostWakeUp::memory(int process) const noexcept {
  Word* const word = shared_ ? words_[static_cast<std::size_t>(process)] : nullptr;
  return word ? reinterpret_cast<std::byte*>(word + 1) : nullptr;
}

bool HostWakeUp::alive(int process) const {
  const Word* word = words_[static_cast<std::size_t>(process)];
  const std::int32_t pid = word ? word->pid.load() : 0;
  return pid == 0 || process_exists(pid);
}

void HostWakeUp::sleep(std::uint32_t seen, std::chrono::microseconds timeout) noexcept {
  thread_local const int exact = prctl(PR_SET_TIMERSLACK, 1000UL);  // by default a nap of 20 us lasts 75
  (void)exact;
  const timespec time{.tv_sec = timeout.count() / 1'000'000, .tv_nsec = timeout.count() % 1'000'000 * 1000};
  futex(mine().wakes, FUTEX_WAIT, seen, &time);  // reads the word again: an earlier wake-up changed it
}

}  // namespace outcore::transport
