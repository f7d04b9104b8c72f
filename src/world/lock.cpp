#include <cerrno>
#include <chrono>

#include "base/pause.hpp"
#include "outcore/call.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "outcore/world.hpp"

namespace outcore {
namespace {

// Two numbers in the part of process 0: a thread that wants the lock draws a ticket, and waits until its
// number is called.
constexpr std::int64_t ticket_offset = 0, called_offset = 8;

}  // namespace

Lock::Lock(World& world) : world_(world), region_(world.allocate(16, "lock")) {}

void Lock::lock() {
  check_may_wait_for_calls();  // before it draws a ticket, which would have to be called and given back
  const std::int64_t ticket = region_.use()->fetch_add(0, region_.offset() + ticket_offset, 1);
  const std::int64_t called = region_.offset() + called_offset;
  using Clock = std::chrono::steady_clock;
  auto watched = Clock::now();
  for (Pause pause; region_.use()->fetch_add(0, called, 0) != ticket; pause()) {
    if (Clock::now() - watched < std::chrono::seconds(1)) continue;
    world_.transport().watch();  // for the holder
    watched = Clock::now();
  }
  region_.use()->flush();
  holds_ = true;
}

void Lock::unlock() {
  if (!holds_.exchange(false))
    throw Error(EPERM, {.attempted = "release a lock", .detail = "this process does not hold it"});
  world_.flush();
  region_.use()->fetch_add(0, region_.offset() + called_offset, 1);
}

}  // namespace outcore
