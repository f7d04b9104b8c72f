#include "transport/doorbells.hpp"

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

/// To try on one host what happens between several.
bool each_its_own_node() {
  const char* nodes = std::getenv("OUTCORE_NODES");
  return nodes && std::strcmp(nodes, "processes") == 0;
}

}  // namespace

Doorbells::Doorbells(Transport& transport, std::size_t beside_bytes)
    : rank_(transport.rank()), bells_(static_cast<std::size_t>(transport.size()), nullptr) {
  const std::string own = each_its_own_node() ? "#" + std::to_string(rank_) : "";
  const auto hosts = numbers_of_names(transport, transport.host() + own);
  const int host = hosts[static_cast<std::size_t>(rank_)];
  const auto neighbours = transport.split(host, rank_);
  bells_[static_cast<std::size_t>(rank_)] = &alone_;
  try {
    shared_ = node_memory(*neighbours, sizeof(Bell) + beside_bytes);
  } catch (const Error&) {  // at all of the host
  }
  if (shared_) {
    int place = 0;
    for (std::size_t i = 0; i < hosts.size(); ++i)  // zeroed memory is a bell that was not rung
      if (hosts[i] == host) bells_[i] = std::launder(reinterpret_cast<Bell*>(shared_->direct(place++)));
  }
  mine().pid = getpid();
  reaches_all_ = std::find(bells_.begin(), bells_.end(), nullptr) == bells_.end();
}

void Doorbells::ring(int process) noexcept {
  Bell* bell = bells_[static_cast<std::size_t>(process)];
  if (!bell) return;
  bell->rings.fetch_add(1);
  if (bell->asleep.load() != 0) futex(bell->rings, FUTEX_WAKE, INT_MAX, nullptr);
}

void Doorbells::ring_sleeper(int process) noexcept {
  Bell* bell = bells_[static_cast<std::size_t>(process)];
  if (!bell || bell->asleep.load() == 0) return;
  bell->sleeper.leave_mine();  // this thread goes on
  ring(process);
}

std::byte* Doorbells::memory(int process) const noexcept {
  Bell* const bell = shared_ ? bells_[static_cast<std::size_t>(process)] : nullptr;
  return bell ? reinterpret_cast<std::byte*>(bell + 1) : nullptr;
}

bool Doorbells::alive(int process) const {
  const Bell* bell = bells_[static_cast<std::size_t>(process)];
  const std::int32_t pid = bell ? bell->pid.load() : 0;
  return pid == 0 || process_exists(pid);
}

void Doorbells::sleep(std::uint32_t seen, std::chrono::microseconds timeout) noexcept {
  thread_local const int exact = prctl(PR_SET_TIMERSLACK, 1000UL);  // by default a nap of 20 us lasts 75
  (void)exact;
  const timespec time{.tv_sec = timeout.count() / 1'000'000, .tv_nsec = timeout.count() % 1'000'000 * 1000};
  futex(mine().rings, FUTEX_WAIT, seen, &time);  // looks at the word once more: who rang before has counted
}

}  // namespace outcore::transport
