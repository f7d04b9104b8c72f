#include "gpc/places.hpp"

#include <bit>
#include <utility>

#include "base/stream_copy.hpp"

namespace outcore::gpc {

Places::Place& Places::Place::operator=(Place&& other) noexcept {
  if (this == &other) return *this;
  clear();
  all_ = std::move(other.all_);
  units_ = std::exchange(other.units_, 0);
  return *this;
}

std::int32_t Places::Place::offset() const noexcept {
  return std::countr_zero(units_) * static_cast<std::int32_t>(unit_bytes);
}

void Places::Place::fill(std::span<const std::byte> from) const noexcept {
  stream_copy(data(), from.data(), from.size());
  end_streams();
}

void Places::Place::clear() noexcept {
  if (units_ != 0) all_->taken_.fetch_and(~std::exchange(units_, 0), std::memory_order_release);
}

Places::Place Places::try_take(std::size_t size_bytes) noexcept {
  Place place;
  if (memory_.size() < transport::Messages::common_bytes || size_bytes == 0 || size_bytes > max_bytes)
    return place;
  const std::size_t count = (size_bytes + unit_bytes - 1) / unit_bytes;
  std::uint64_t taken = taken_.load(std::memory_order_relaxed), run = 0;
  do {
    std::uint64_t begins = ~taken;  // a bit for each unit at which a run of free ones begins
    for (std::size_t i = 1; i < count; ++i) begins &= ~taken >> i;
    if (begins == 0) return place;
    run = ((std::uint64_t{1} << count) - 1) << std::countr_zero(begins);
  } while (!taken_.compare_exchange_weak(taken, taken | run, std::memory_order_acquire,
                                         std::memory_order_relaxed));
  place.all_ = shared_from_this();
  place.units_ = run;
  return place;
}

}  // namespace outcore::gpc
