// Poll backoff: how often a thread may check for work at a limited cost.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>
#include <utility>

namespace outcore::transport {

/// Limits a thread that looks in vain, each time after a nap, to 1/`share` of a core: if a look is expensive,
/// naps are longer. Used by that thread alone.
class PollBackoff {
 public:
  explicit PollBackoff(int share) : share_(share) {}

  /// Call it once for each look. Returns the nap after it, for the case that nothing was found.
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
