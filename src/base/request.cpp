#include "outcore/request.hpp"

#include <cerrno>
#include <chrono>
#include <vector>

#include "base/completion.hpp"
#include "base/pause.hpp"
#include "base/request_state.hpp"
#include "outcore/error.hpp"

namespace outcore {
namespace {

std::atomic<std::uint32_t> g_completions{0};

/// Informs requests that this thread sleeps.
class Waiting {
 public:
  explicit Waiting(std::span<Request> requests) {
    told_.reserve(requests.size());
    for (const Request& each : requests)
      if (!each.done()) add(*each.state());
  }
  ~Waiting() {
    for (Request::State* each : told_) each->end_wait(each == found_ ? nanoseconds() : 0);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  void found(Request::State* state) noexcept { found_ = state; }

 private:
  using Clock = std::chrono::steady_clock;

  void add(Request::State& state) {
    try {
      state.begin_wait();
    } catch (...) {
      for (Request::State* each : told_) each->end_wait(0);
      throw;
    }
    told_.push_back(&state);
  }
  [[nodiscard]] std::uint64_t nanoseconds() const noexcept {
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - start_).count());
  }

  std::vector<Request::State*> told_;
  Request::State* found_ = nullptr;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

void announce_completion() noexcept {
  g_completions.fetch_add(1, std::memory_order_release);
  g_completions.notify_all();
}
std::uint32_t completion_count() noexcept {
  return g_completions.load(std::memory_order_acquire);
}
void await_completion(std::uint32_t seen) noexcept {
  g_completions.wait(seen, std::memory_order_acquire);
}

// ---- the handle

std::int64_t Request::wait() {
  return state_ ? state_->deliver() : 0;
}

bool Request::test() {
  if (!state_) return true;
  State& state = *state_;
  if (!state.done()) {
    state.help();
    if (!state.done()) return false;
  }
  state.deliver();
  return true;
}

bool Request::done() const noexcept {
  return !state_ || !state_.here() || state_.get()->done();
}

std::span<std::byte> Request::reply() const {
  if (!state_) return {};
  if (!done()) throw Error(EINPROGRESS, {.attempted = "look at the reply of a call"});
  return state_.get()->reply();
}

void wait_all(std::span<Request> requests) {
  std::exception_ptr first;
  for (Request& request : requests) {
    try {
      request.wait();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

std::size_t wait_any(std::span<Request> requests) {
  if (requests.empty()) throw Error(EINVAL, {.attempted = "wait for any of no requests"});
  const auto find = [&] {
    std::size_t i = 0;
    while (i < requests.size() && !requests[i].done()) ++i;
    return i;
  };
  if (const std::size_t i = find(); i < requests.size()) return i;
  Waiting waiting(requests);
  Pause pause;
  for (;;) {
    const std::uint32_t seen = completion_count();
    bool come_back = false;
    for (Request& each : requests)
      if (!each.done() && each.state_->help()) come_back = true;
    if (const std::size_t i = find(); i < requests.size()) {
      if (requests[i].state_.here()) waiting.found(requests[i].state_.get());
      return i;
    }
    if (come_back)
      pause();
    else
      await_completion(seen);
  }
}

// ---- what stands behind it

std::int64_t Request::State::deliver() {
  finish();
  if (const std::exception_ptr failure = error()) {
    told_ = true;
    std::rethrow_exception(failure);
  }
  return value();
}

std::exception_ptr Request::State::undelivered() {
  finish();
  const std::exception_ptr failure = error();
  return failure && !told_.exchange(true) ? failure : nullptr;
}

void FinishedByWaiter::finish() {
  if (finished()) return;
  if (!done()) check_may_wait();
  const std::lock_guard lock(mutex_);
  if (finished()) return;
  try {
    end();
  } catch (...) {
    error_ = std::current_exception();
  }
  finished_.store(true, std::memory_order_release);
}

void FinishedByWaiter::finish_quietly() noexcept {
  try {
    finish();
  } catch (...) {  // it cannot be waited for here
  }
}

void ComposedRequest::begin_part() {
  const std::lock_guard lock(mutex_);
  ++parts_;
}

void ComposedRequest::end_part(const std::exception_ptr& failure) {
  std::unique_lock lock(mutex_);
  if (failure && !error_) error_ = failure;
  if (--parts_ > 0) return;
  const auto at_end = std::exchange(at_end_, nullptr);
  const bool has_failed = error_ != nullptr;
  lock.unlock();
  if (at_end) at_end(has_failed);
  std::deque<Request> helped;  // they hold objects that hold this: released without the lock
  lock.lock();
  helped.swap(helped_);
  done_.store(true, std::memory_order_release);
  changed_.notify_all();
  lock.unlock();
  announce_completion();
}

void ComposedRequest::add(Request part) {
  const std::lock_guard lock(mutex_);
  while (!helped_.empty() && helped_.front().done()) helped_.pop_front();
  helped_.push_back(std::move(part));
  changed_.notify_all();
}

bool ComposedRequest::failed() const {
  const std::lock_guard lock(mutex_);
  return error_ != nullptr;
}

std::exception_ptr ComposedRequest::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void ComposedRequest::finish() {
  if (done()) return;
  std::unique_lock lock(mutex_);
  while (!done()) {
    if (helped_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Request part = helped_.front();
    lock.unlock();
    part.state()->finish();  // its error has ended its part
    lock.lock();
    if (!helped_.empty() && helped_.front().done()) helped_.pop_front();
  }
}

}  // namespace outcore
