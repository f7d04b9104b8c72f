#include "dio/thread_pool.hpp"

#include <utility>

#include "device/worker.hpp"

namespace outcore::dio {

void ThreadPool::begin() {
  const std::lock_guard guard(mutex_);
  if (threads_.empty()) start();
}

void ThreadPool::end() {
  {
    const std::lock_guard guard(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void ThreadPool::add(std::function<void()> task) {
  {
    const std::lock_guard guard(mutex_);
    if (idle_ <= waiting_.size() && threads_.size() < max_threads_) start();
    waiting_.push_back(std::move(task));
  }
  changed_.notify_one();
}

/// Starts another thread; if the system has none, the existing ones must do.
void ThreadPool::start() {
  try {
    threads_.reserve(threads_.size() + 1);
    threads_.push_back(device::start_worker(name_, [this] { run(); }));
  } catch (...) {
    if (threads_.empty()) throw;
  }
}

/// A thread is woken with low priority, and works with that of a thread for which a disk waits. Measured:
/// [M39].
void ThreadPool::run() {
  auto wakes = device::Wakes::later;  // as it was started
  const auto become = [&](device::Wakes wanted) {
    if (std::exchange(wakes, wanted) != wanted) device::set_wakes(wanted);
  };
  std::unique_lock lock(mutex_);
  for (;;) {
    if (waiting_.empty()) become(device::Wakes::later);
    ++idle_;
    changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    auto task = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    become(device::Wakes::soon);
    task();
    task = nullptr;  // its objects are destroyed without the lock
    lock.lock();
  }
}

}  // namespace outcore::dio
