#include "tensor/crew.hpp"

#include <algorithm>
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
    queue_.clear();  // after an error or a stop nobody needs the rest; predecessors of what runs have begun
  }
  is_given_.notify_all();
  for (std::thread& each : threads_) each.join();
}

void Crew::give(std::vector<Work> parts, std::size_t first) {
  const std::int64_t step = given_++;
  if (threads_.empty()) {
    for (const Work& part : parts)
      if (!error_) run(part);
    return;
  }
  std::size_t wakes = 0;
  {
    const std::lock_guard lock(mutex_);
    left_.push_back(static_cast<std::int64_t>(parts.size()));
    if (last_.size() < first + parts.size()) {
      last_.resize(first + parts.size(), none);
      ended_.resize(first + parts.size(), none);
    }
    for (std::size_t number = first; Work& part : parts) {
      queue_.push_back({std::move(part), step, std::exchange(last_[number], step), number});
      ++number;
    }
    wakes = std::min(idle_, parts.size());
  }
  for (; wakes > 0; --wakes) is_given_.notify_one();
}

void Crew::wait() {
  std::unique_lock lock(mutex_);
  if (!threads_.empty()) {
    waits_ = true;
    is_done_.wait(lock, [&] { return left_.front() == 0; });
    waits_ = false;
    left_.pop_front();
  }
  ++waited_;
  if (error_) std::rethrow_exception(error_);
}

bool Crew::has_done() {
  if (under_way() == 0 || threads_.empty()) return under_way() > 0;
  const std::lock_guard lock(mutex_);
  return left_.front() == 0;
}

void Crew::run(const Work& work) noexcept {
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
    ++idle_;
    is_given_.wait(lock, [&] { return closed_ || !queue_.empty(); });
    --idle_;
    if (queue_.empty()) return;
    const Part part = std::move(queue_.front());
    queue_.pop_front();
    ++held_up_;
    is_ended_.wait(lock, [&] { return ended_[part.number] == part.before; });
    --held_up_;
    if (!error_) {
      lock.unlock();
      run(part.work);
      lock.lock();
    }
    ended_[part.number] = part.step;
    if (held_up_ > 0) is_ended_.notify_all();
    if (--left_[static_cast<std::size_t>(part.step - waited_)] == 0 && part.step == waited_ && waits_)
      is_done_.notify_one();
  }
}

}  // namespace outcore::tensor
