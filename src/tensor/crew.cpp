#include "tensor/crew.hpp"

#include <utility>

#include "base/start_thread.hpp"

namespace outcore::tensor {

Crew::Crew(int threads) {
  try {
    for (int i = 0; i < threads; ++i) threads_.push_back(start_thread("outcore-crew", [this] { work(); }));
  } catch (...) {
    end();
    throw;
  }
}

Crew::~Crew() {
  end();
}

void Crew::end() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  for (std::thread& each : threads_) each.join();
}

void Crew::give(std::vector<Work> parts) {
  const std::int64_t step = given_++;
  if (threads_.empty()) {
    for (const Work& part : parts) run(part);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    left_.push_back(static_cast<std::int64_t>(parts.size()));
    if (last_.size() < parts.size()) {
      last_.resize(parts.size(), none);
      ended_.resize(parts.size(), none);
    }
    for (std::size_t number = 0; number < parts.size(); ++number)
      queue_.push_back({std::move(parts[number]), step, std::exchange(last_[number], step), number});
  }
  changed_.notify_all();
}

void Crew::wait() {
  std::unique_lock lock(mutex_);
  if (!threads_.empty()) {
    changed_.wait(lock, [&] { return left_.front() == 0; });
    left_.pop_front();
  }
  ++waited_;
  if (error_) std::rethrow_exception(error_);
}

void Crew::run(const Work& work) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (error_) return;
  }
  try {
    work();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void Crew::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Part part = std::move(queue_.front());
    queue_.pop_front();
    changed_.wait(lock, [&] { return ended_[part.number] == part.before; });
    lock.unlock();
    run(part.work);
    lock.lock();
    ended_[part.number] = part.step;
    --left_[static_cast<std::size_t>(part.step - waited_)];
    changed_.notify_all();
  }
}

}  // namespace outcore::tensor
