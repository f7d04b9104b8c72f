#include "dio/staging.hpp"

#include <algorithm>
#include <utility>

#include "outcore/call.hpp"
#include "outcore/error.hpp"

namespace outcore::dio {
namespace {

constexpr std::int64_t min_staging_bytes = 4 << 20, max_staging_bytes = 32 << 20;

}  // namespace

// ---- of a process that asks

Staging::Staging(Budget& budget)
    : budget_(budget),
      max_bytes_(std::clamp(budget.limit_bytes() / 16, min_staging_bytes, max_staging_bytes)) {}

void Staging::acquire(std::int64_t bytes) {
  if (try_acquire(bytes)) return;
  const WaitsForOthers waits;  // the holder of the memory may wait for a call that this process serves
  std::unique_lock lock(mutex_);
  while (true) {
    released_.wait(lock, [&] { return used_bytes_ == 0 || used_bytes_ + bytes <= max_bytes_; });
    try {
      budget_.reserve(bytes, "elements on their way to or from another process");
      break;
    } catch (const Error&) {
      if (used_bytes_ == 0) throw;
    }
    released_.wait(lock);
  }
  used_bytes_ += bytes;
}

bool Staging::try_acquire(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (used_bytes_ + bytes > max_bytes_) return false;
  try {
    budget_.reserve(bytes, "elements on their way to or from another process");
  } catch (const Error&) {
    return false;
  }
  used_bytes_ += bytes;
  return true;
}

void Staging::release(std::int64_t bytes) noexcept {
  {
    const std::lock_guard lock(mutex_);
    used_bytes_ -= bytes;
    budget_.release(bytes);
  }
  released_.notify_all();
}

Staged::Staged(std::shared_ptr<Staging> staging, std::int64_t bytes)
    : staging_(std::move(staging)), bytes_(bytes) {
  try {
    buffer_ = device::Buffer(static_cast<std::size_t>(bytes));
  } catch (...) {
    staging_->release(bytes_);
    throw;
  }
}

Staged::~Staged() {
  buffer_ = {};
  staging_->release(bytes_);
}

// ---- of owners

ReplySlots::ReplySlots(Budget& budget)
    : memory_(budget, small_count * small_bytes + large_count * large_bytes, "replies of a striped file") {
  std::byte* slot = memory_.span().data();
  for (std::int64_t i = 0; i < large_count; ++i, slot += large_bytes) large_.push_back(slot);
  for (std::int64_t i = 0; i < small_count; ++i, slot += small_bytes) small_.push_back(slot);
}

std::byte* ReplySlots::take_last(std::vector<std::byte*>& free) noexcept {
  std::byte* const slot = free.back();
  free.pop_back();
  return slot;
}

/// Not with the lock: without memory for it, the slot is given back here.
std::shared_ptr<std::byte> ReplySlots::owned(std::byte* slot, std::vector<std::byte*>& free) {
  return {slot, [self = shared_from_this(), &free](std::byte* freed) {
            {
              const std::lock_guard guard(self->mutex_);
              free.push_back(freed);
            }
            self->freed_.notify_all();
          }};
}

std::shared_ptr<std::byte> ReplySlots::try_take(std::int64_t wanted_bytes) {
  std::unique_lock lock(mutex_);
  auto& free = slots_for(wanted_bytes);
  if (free.empty()) return nullptr;
  std::byte* const slot = take_last(free);
  lock.unlock();
  return owned(slot, free);
}

std::shared_ptr<std::byte> ReplySlots::take(std::int64_t wanted_bytes) {
  std::unique_lock lock(mutex_);
  auto& free = slots_for(wanted_bytes);
  freed_.wait(lock, [&] { return !free.empty(); });
  std::byte* const slot = take_last(free);
  lock.unlock();
  return owned(slot, free);
}

}  // namespace outcore::dio
