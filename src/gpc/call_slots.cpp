#include "gpc/call_slots.hpp"

#include <bit>
#include <utility>

#include "base/stream_copy.hpp"
#include "outcore/extend/transport.hpp"

namespace outcore::gpc {

CallSlots::Slot& CallSlots::Slot::operator=(Slot&& other) noexcept {
  if (this == &other) return *this;
  clear();
  all_ = std::move(other.all_);
  units_ = std::exchange(other.units_, 0);
  return *this;
}

std::int32_t CallSlots::Slot::offset() const noexcept {
  return std::countr_zero(units_) * static_cast<std::int32_t>(unit_bytes);
}

void CallSlots::Slot::fill(std::span<const std::byte> from) const noexcept {
  stream_copy(data(), from.data(), from.size());
  end_streams();
}

void CallSlots::Slot::clear() noexcept {
  if (units_ != 0) all_->taken_.fetch_and(~std::exchange(units_, 0), std::memory_order_release);
}

CallSlots::Slot CallSlots::try_take(std::size_t size_bytes) noexcept {
  Slot slot;
  if (memory_.size() < transport::Messages::common_bytes || size_bytes == 0 || size_bytes > max_bytes)
    return slot;
  const std::size_t count = (size_bytes + unit_bytes - 1) / unit_bytes;
  std::uint64_t taken = taken_.load(std::memory_order_relaxed), run = 0;
  do {
    std::uint64_t begins = ~taken;  // a bit for each unit at which a run of free ones begins
    for (std::size_t i = 1; i < count; ++i) begins &= ~taken >> i;
    if (begins == 0) return slot;
    run = ((std::uint64_t{1} << count) - 1) << std::countr_zero(begins);
  } while (!taken_.compare_exchange_weak(taken, taken | run, std::memory_order_acquire,
                                         std::memory_order_relaxed));
  slot.all_ = shared_from_this();
  slot.units_ = run;
  return slot;
}

}  // namespace outcore::gpc
