#include "outcore/origin.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "outcore/error.hpp"

namespace outcore {
namespace {

std::atomic<int> parent{0};  // the process from which this one was forked

void before() {
  parent.store(static_cast<int>(getpid()), std::memory_order_relaxed);
}

}  // namespace

constinit std::atomic<std::uint32_t> Origin::present{0};

void Origin::refuse(std::string_view attempted) const {
  const bool direct = generation_ + 1 == present.load(std::memory_order_relaxed);
  const std::string owner = direct ? "process " + std::to_string(parent.load(std::memory_order_relaxed)) +
                                         ", and this one was forked from that"
                                   : "a process that this one was forked from, over others";
  throw Error(EBADF, {.attempted = std::string(attempted),
                      .detail = "it belongs to " + owner +
                                ": open or make it in this one, or start workers by 'spawn'"});
}

namespace {

// The library is loaded before anything is made.
const int registered = pthread_atfork(before, nullptr, [] { Origin::count(); });

}  // namespace
}  // namespace outcore
