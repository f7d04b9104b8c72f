#include "array/transfers.hpp"

#include <algorithm>
#include <utility>

namespace outcore::array {

bool Transfers::enter() noexcept {
  if ((uses_.fetch_add(1) & closing) == 0) return true;
  leave();
  return false;
}

void Transfers::leave() noexcept {
  if (uses_.fetch_sub(1) & closing) uses_.notify_all();
}

void Transfers::add(const std::shared_ptr<GlobalTransfer>& request) {
  {
    const std::lock_guard lock(mutex_);
    if (requests_.size() == requests_.capacity())  // before it grows
      std::erase_if(requests_, [](const auto& each) { return each.expired(); });
    requests_.push_back(request);
  }
  // A thread that closes may have collected the requests already, and would wait for this one.
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
  std::vector<std::weak_ptr<GlobalTransfer>> requests;
  {
    const std::lock_guard lock(mutex_);
    requests.swap(requests_);
  }
  for (const auto& each : requests)
    if (const auto request = each.lock()) request->hand_over_error();
  return !requests.empty();
}

void Transfers::raise_undelivered() {
  (void)complete_requests();
  undelivered.raise();
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

GlobalTransfer::~GlobalTransfer() {
  hand_over_error();
}

void GlobalTransfer::hand_over_error() noexcept {
  finish_quietly();
  if (changes_)
    if (const std::exception_ptr failure = undelivered()) transfers_->undelivered.add(failure);
}

bool GlobalTransfer::done() const noexcept {
  return finished() || std::ranges::all_of(operations_, [](const Request& each) { return each.done(); });
}

bool GlobalTransfer::help() noexcept {
  bool comes_back = false;
  if (!finished())
    for (const Request& each : operations_)
      if (!each.done() && each.state()->help()) comes_back = true;
  return comes_back;
}

void GlobalTransfer::end() {
  std::exception_ptr failure;
  try {
    wait_all(operations_);
  } catch (...) {
    failure = std::current_exception();
  }
  transfers_->leave();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace outcore::array
