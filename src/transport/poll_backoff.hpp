// Poll backoff: how often a thread may look whether there is something to do, if it must not cost much.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>
#include <utility>

namespace outcore::transport {

/// Keeps a thread that looks in vain, each time after a nap, at 1/`share` of a core: where a look is dear,
/// naps are longer. Used by that thread alone.
class PollBackoff {
 public:
  explicit PollBackoff(int share) : share_(share) {}

  /// Once for each look: the nap after it, if nothing was found.
  [[nodiscard]] std::chrono::microseconds nap() noexcept {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    const std::int64_t now_ns = time.tv_sec * 1'000'000'000LL + time.tv_nsec;
    const std::int64_t taken_ns = now_ns - std::exchange(used_ns_, now_ns);
    if (std::exchange(begun_, true)) cost_ns_ += (taken_ns - cost_ns_) / 8;  // averaged over some
    return std::chrono::microseconds(cost_ns_ * share_ / 1000);
  }

 private:
  int share_;
  bool begun_ = false;
  std::int64_t used_ns_ = 0, cost_ns_ = 0;
};

}  // namespace outcore::transport
