#include "world/memory.hpp"

#include <algorithm>
#include <string>

#include "base/memory_limits.hpp"

namespace outcore::world {

std::shared_ptr<Budget> make_budget(std::int64_t asked_bytes, int processes) {
  const auto limits = memory_limits();
  const MemoryLimit* least = nullptr;
  for (const MemoryLimit& each : limits)
    if ((asked_bytes == 0 || each.hard) &&
        (!least || each.limit_of_one(processes) < least->limit_of_one(processes)))
      least = &each;
  if (!least || (asked_bytes > 0 && asked_bytes <= least->limit_of_one(processes)))
    return std::make_shared<Budget>(asked_bytes);
  const std::string origin =
      least->name + " of " + std::to_string(least->limit_bytes) + " bytes in " + least->source;
  const std::int64_t most = least->limit_of_one(processes);
  if (asked_bytes == 0) return std::make_shared<Budget>(most / 2, "half of the memory left by " + origin);
  return std::make_shared<Budget>(most, "less than requested: " + origin);
}

}  // namespace outcore::world
