// Work that several threads share during a call.
#pragma once

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/start_thread.hpp"

namespace outcore {

/// Calls work(t) for t = 0, ..., threads - 1 at the same time, 0 in this thread, and returns when all have
/// returned. Throws the exception of one of them, or Error(EAGAIN) if a thread cannot be started, after the
/// others have ended.
template <class Work>
void in_team(int threads, const Work& work) {
  std::mutex mutex;
  std::exception_ptr error;
  const auto guarded = [&](int thread) noexcept {
    try {
      work(thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  struct Helpers {
    std::vector<std::thread> threads;
    ~Helpers() {
      for (std::thread& each : threads) each.join();
    }
  };
  {
    Helpers helpers;
    helpers.threads.reserve(static_cast<std::size_t>(threads));
    for (int t = 1; t < threads; ++t)
      helpers.threads.push_back(start_thread("outcore-team", [&guarded, t] { guarded(t); }));
    guarded(0);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace outcore
