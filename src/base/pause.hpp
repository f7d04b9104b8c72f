// How the library waits for other processes: asleep, never spinning for long.
#pragma once

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace outcore {

/// Sleeps 20 us at first, then a sixteenth of the time waited so far, at most 1 ms or the given limit. So a
/// wait takes hardly longer than necessary. With doubling sleeps it would take up to half as long again, and
/// an operation of several steps in which processes wait for each other, such as a barrier, would get slower
/// by that at each step. Measured: [M21].
class Pause {
 public:
  explicit Pause(std::chrono::microseconds max_sleep = std::chrono::microseconds(1000))
      : max_sleep_(max_sleep) {}
  ~Pause() {
    if (slack_ns_ > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_ns_));
  }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

  void operator()() {
    if (slack_ns_ == 0) {  // by default a sleep of 20 us lasts 75
      slack_ns_ = prctl(PR_GET_TIMERSLACK);
      prctl(PR_SET_TIMERSLACK, 1000UL);
    }
    const Clock::duration waited = Clock::now() - start_;
    std::this_thread::sleep_for(std::clamp<Clock::duration>(waited / 16, min_sleep, max_sleep_));
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds min_sleep{20};
  std::chrono::microseconds max_sleep_;
  Clock::time_point start_ = Clock::now();
  int slack_ns_ = 0;  // timer slack of the thread, to be restored
};

}  // namespace outcore
