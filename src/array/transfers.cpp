#include "array/transfers.hpp"

#include <utility>

namespace outcore {
namespace array {

bool Transfers::enter() noexcept {
  if ((uses_.fetch_add(1) & closing) == 0) return true;
  leave();
  return false;
}

void Transfers::leave() noexcept {
  if (uses_.fetch_sub(1) & closing) uses_.notify_all();
}

void Transfers::add(const std::shared_ptr<GlobalArray::Request::State>& request) {
  {
    const std::lock_guard lock(mutex_);
    if (requests_.size() == requests_.capacity())  // before it grows
      std::erase_if(requests_, [](const auto& each) { return each.expired(); });
    requests_.push_back(request);
  }
  // Who closes may have looked for requests already, and would wait for this one.
  if (uses_.load() & closing) request->finish();
}

bool Transfers::hold() {
  const std::lock_guard lock(mutex_);
  if (!no_more_holds_) ++holds_;
  return !no_more_holds_;
}

void Transfers::let_go() {
  const std::lock_guard lock(mutex_);
  --holds_;
  held_.notify_all();
}

bool Transfers::complete_requests() noexcept {
  std::vector<std::weak_ptr<GlobalArray::Request::State>> requests;
  {
    const std::lock_guard lock(mutex_);
    requests.swap(requests_);
  }
  for (const auto& each : requests)
    if (const auto request = each.lock()) request->finish();
  return !requests.empty();
}

void Transfers::finish() noexcept {
  {
    std::unique_lock lock(mutex_);
    no_more_holds_ = true;
    held_.wait(lock, [&] { return holds_ == 0; });
  }
  uses_.fetch_or(closing);
  while (true) {
    const bool some = complete_requests();
    const std::uint32_t uses = uses_.load();
    if (uses == closing) return;
    if (!some) uses_.wait(uses);
  }
}

}  // namespace array

/// All operations have ended.
void GlobalArray::Request::State::complete() noexcept {
  operations.clear();
  if (const auto ended = std::exchange(transfers, nullptr)) ended->leave();
}

void GlobalArray::Request::State::finish() noexcept {
  const std::lock_guard lock(mutex);
  for (transport::Operation& operation : operations) {
    try {
      operation.wait();
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  complete();
}

void GlobalArray::Request::State::deliver() {
  if (error) std::rethrow_exception(std::exchange(error, nullptr));
}

bool GlobalArray::Request::State::test() {
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock) return false;  // another thread waits for it
  while (!operations.empty()) {
    try {
      if (!operations.back().test()) return false;
    } catch (...) {
      if (!error) error = std::current_exception();
    }
    operations.pop_back();
  }
  complete();
  deliver();
  return true;
}

}  // namespace outcore
