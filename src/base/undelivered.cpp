#include "base/undelivered.hpp"

#include <algorithm>
#include <utility>

namespace outcore {

void Undelivered::watch(std::shared_ptr<Request::State> request) {
  const std::lock_guard lock(mutex_);
  if (watched_.size() >= look_at_) {
    std::erase_if(watched_, [](const auto& each) { return each->settled(); });
    look_at_ = std::max<std::size_t>(64, 2 * watched_.size());
  }
  watched_.push_back(std::move(request));
}

void Undelivered::add(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!lost_) lost_ = std::move(error);
}

std::exception_ptr Undelivered::take() {
  std::vector<std::shared_ptr<Request::State>> watched;
  std::exception_ptr first;
  {
    const std::lock_guard lock(mutex_);
    watched.swap(watched_);
    first = std::exchange(lost_, nullptr);
  }
  for (const auto& each : watched)
    if (const std::exception_ptr error = each->undelivered(); error && !first) first = error;
  return first;
}

void Undelivered::raise() {
  if (const std::exception_ptr error = take()) std::rethrow_exception(error);
}

}  // namespace outcore
