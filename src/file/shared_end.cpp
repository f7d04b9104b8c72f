#include "file/shared_end.hpp"

#include <algorithm>
#include <span>

#include "outcore/extend/transport.hpp"

namespace outcore::file {
namespace {

/// Raises a number to at least `value`.
template <class Number>
void raise_to(Number&& number, std::int64_t value) noexcept {
  std::int64_t seen = number.load(std::memory_order_relaxed);
  while (seen < value &&
         !number.compare_exchange_weak(seen, value, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

}  // namespace

SharedEnd::SharedEnd(World& world) : region_(world.allocate(64, "the end of a shared file")) {
  int first = world.rank();  // the first process of this node
  world.node_transport().broadcast(std::as_writable_bytes(std::span(&first, 1)), 0);
  std::byte* const direct = region_.segment().direct(first);
  const int holder = direct ? first : world.rank();
  mine_ = reinterpret_cast<std::int64_t*>((direct ? direct : region_.segment().local()) + region_.offset());
  holders_.resize(static_cast<std::size_t>(world.size()));
  world.transport().all_gather(std::as_bytes(std::span(&holder, 1)),
                               std::as_writable_bytes(std::span(holders_)));
  std::ranges::sort(holders_);
  holders_.erase(std::unique(holders_.begin(), holders_.end()), holders_.end());
}

void SharedEnd::raise(std::int64_t end) {
  if (end <= known()) return;
  const auto use = region_.use();  // throws if the world was closed, so that the memory is gone
  raise_to(std::atomic_ref(*mine_), end);
  raise_to(known_, end);
}

std::int64_t SharedEnd::ask(std::size_t holder) {
  const std::int64_t end = region_.use()->fetch_add(holders_[holder], region_.offset(), 0);
  raise_to(known_, end);
  return end;
}

std::int64_t SharedEnd::ask() {
  for (std::size_t holder = 0; holder < holders_.size(); ++holder) ask(holder);
  return known();
}

bool SharedEnd::reaches(std::int64_t end) {
  if (end <= known()) return true;
  const std::size_t first = furthest_;
  for (std::size_t i = 0; i < holders_.size(); ++i) {
    const std::size_t holder = (first + i) % holders_.size();
    if (ask(holder) < end) continue;
    furthest_ = holder;
    return true;
  }
  return false;
}

}  // namespace outcore::file
