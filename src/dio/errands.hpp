// What threads do for others, who go on.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace outcore::store {

/// Threads that do one thing after another, begun in the order in which they came; started when all others
/// are busy. They never take the core of who asks.
class Errands {
 public:
  /// `name`: of the thread, at most 15 characters, kept by the caller.
  explicit Errands(const char* name, std::size_t max_threads = 1) : name_(name), max_threads_(max_threads) {}
  ~Errands() { end(); }
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  /// Any thread. An errand must not throw.
  void add(std::function<void()> errand);
  /// All are done when it returns; none may be added from then on. Idempotent.
  void end();

 private:
  void start();
  void run();

  const char* name_;
  const std::size_t max_threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::size_t idle_ = 0;  // threads
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace outcore::store
