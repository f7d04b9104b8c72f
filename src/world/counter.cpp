#include "outcore/extend/transport.hpp"
#include "outcore/world.hpp"

namespace outcore {

Counter::Counter(World& world) : world_(world), region_(world.allocate(sizeof(std::int64_t), "counter")) {}

std::int64_t Counter::next(std::int64_t count) {
  return region_.use()->fetch_add(0, region_.offset(), count);
}

std::optional<std::int64_t> Counter::next_within(std::int64_t limit, std::int64_t count) {
  const auto use = region_.use();
  for (std::int64_t seen = next(0); seen <= limit - count;) {
    const std::int64_t found = use->compare_swap(0, region_.offset(), seen, seen + count);
    if (found == seen) return seen;
    seen = found;
  }
  return std::nullopt;
}

void Counter::reset() {
  world_.barrier();  // no process counts any more
  if (world_.rank() == 0) {
    const std::int64_t value = next(0);
    next(-value);
  }
  world_.barrier();
}

}  // namespace outcore
