// A thread pool: threads that run tasks for callers, which go on.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace outcore::dio {

/// Threads that run tasks, begun in the order in which they were added; another thread is started when all
/// are busy. A task never takes the core of the caller that adds it. Once begun, it gets a core at once
/// whenever its wait ends, because a disk may wait for it.
class ThreadPool {
 public:
  /// `name`: of the thread, at most 15 characters, kept by the caller.
  explicit ThreadPool(const char* name, std::size_t max_threads = 1)
      : name_(name), max_threads_(max_threads) {}
  ~ThreadPool() { end(); }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Starts the first thread, so that there is always one for a task. Throws Error(EAGAIN).
  void begin();
  /// Any thread. A task must not throw. Throws Error(EAGAIN) if there is no thread, and none can be started.
  void add(std::function<void()> task);
  /// Returns when all tasks are done; none may be added from then on. Idempotent.
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

}  // namespace outcore::dio
