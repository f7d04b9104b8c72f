// What a thread does for others, who go on.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace outcore::store {

/// A thread that does one thing after another, in the order in which they came; started with the first. It
/// never takes the core of who asks.
class Errands {
 public:
  /// `name`: of the thread, at most 15 characters, kept by the caller.
  explicit Errands(const char* name) : name_(name) {}
  ~Errands();  ///< all are done
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  /// Any thread. An errand must not throw.
  void add(std::function<void()> errand);

 private:
  void run();

  const char* name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace outcore::store
