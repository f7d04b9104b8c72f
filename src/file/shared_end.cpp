#include "file/shared_end.hpp"

#include <algorithm>
#include <span>

namespace outcore::file {
namespace {

/// Raises a number to at least `value`; returns whether it was less.
template <class Number>
bool raise_to(Number&& number, std::int64_t value) noexcept {
  std::int64_t seen = number.load(std::memory_order_relaxed);
  while (seen < value)
    if (number.compare_exchange_weak(seen, value, std::memory_order_release, std::memory_order_relaxed))
      return true;
  return false;
}

}  // namespace

SharedEnd::SharedEnd(World& world) : region_(world.allocate(64, "the end of a shared file")) {
  int first = world.rank();  // of this node
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

void SharedEnd::learn(std::int64_t end) noexcept {
  (void)raise_to(known_, end);
}

void SharedEnd::raise(std::int64_t end) {
  if (end <= known()) return;
  (void)region_.segment();  // throws if the world was closed, and the memory is gone
  raise_to(std::atomic_ref(*mine_), end);
  learn(end);
}

std::int64_t SharedEnd::ask() {
  std::int64_t end = known();
  for (const int holder : holders_)
    end = std::max(end, region_.segment().fetch_add(holder, region_.offset(), 0));
  learn(end);
  return end;
}

}  // namespace outcore::file
