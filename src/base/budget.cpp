#include "outcore/budget.hpp"

#include <algorithm>
#include <cerrno>

#include "outcore/error.hpp"

namespace outcore {

void Budget::reserve(std::int64_t size_bytes, std::string_view what) {
  const std::lock_guard guard(mutex_);
  if (size_bytes < 0 || size_bytes > limit_bytes_ - used_bytes_)
    throw Error(ENOMEM,
                {.attempted = "memory for " + std::string(what),
                 .size_bytes = size_bytes,
                 .detail = "of the budget of " + std::to_string(limit_bytes_) + " bytes of this process" +
                           (origin_.empty() ? " " : " (" + origin_ + ") ") + std::to_string(used_bytes_) +
                           " are in use, " + std::to_string(limit_bytes_ - used_bytes_) + " are left"});
  used_bytes_ += size_bytes;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
}

void Budget::release(std::int64_t size_bytes) noexcept {
  const std::lock_guard guard(mutex_);
  used_bytes_ -= size_bytes;
}

std::int64_t Budget::used_bytes() const noexcept {
  const std::lock_guard guard(mutex_);
  return used_bytes_;
}

std::int64_t Budget::peak_bytes() const noexcept {
  const std::lock_guard guard(mutex_);
  return peak_bytes_;
}

}  // namespace outcore
