// How the library waits for other processes: asleep, never spinning for long.
#pragma once

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace outcore::transport {

/// Sleeps 20 us at first, doubling to 1 ms.
class Pause {
 public:
  Pause() = default;
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
    std::this_thread::sleep_for(length_);
    length_ = std::min(2 * length_, longest);
  }

 private:
  static constexpr std::chrono::microseconds longest{1000};
  std::chrono::microseconds length_{20};
  int slack_ns_ = 0;  // of the thread, to be restored
};

}  // namespace outcore::transport
