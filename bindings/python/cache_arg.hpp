// Names of cache modes as Python gives them.
#pragma once

#include <stdexcept>
#include <string>

#include "outcore/page_cache.hpp"

namespace outcore::python {

[[nodiscard]] inline device::Cache parse_cache(const std::string& name) {
  if (name == "automatic") return device::Cache::automatic;
  if (name == "buffered") return device::Cache::buffered;
  if (name == "direct") return device::Cache::direct;
  throw std::invalid_argument("cache is '" + name + "', expected 'automatic', 'buffered' or 'direct'");
}

}  // namespace outcore::python
