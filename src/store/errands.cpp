#include "store/errands.hpp"

#include <utility>

#include "device/worker.hpp"

namespace outcore::store {

Errands::~Errands() {
  {
    const std::lock_guard guard(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Errands::add(std::function<void()> errand) {
  {
    const std::lock_guard guard(mutex_);
    if (!thread_.joinable()) thread_ = device::start_worker(name_, [this] { run(); });
    waiting_.push_back(std::move(errand));
  }
  changed_.notify_one();
}

void Errands::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    auto errand = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    errand();
    errand = nullptr;  // what it holds goes without the lock
    lock.lock();
  }
}

}  // namespace outcore::store
