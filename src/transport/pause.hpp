// How the library waits for other processes: asleep, never spinning for long.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace outcore::transport {

/// Sleeps 20 us at first, doubling to 1 ms.
class Pause {
 public:
  void operator()() {
    std::this_thread::sleep_for(length_);
    length_ = std::min(2 * length_, longest);
  }

 private:
  static constexpr std::chrono::microseconds longest{1000};
  std::chrono::microseconds length_{20};
};

}  // namespace outcore::transport
