// Words for the use of the page cache as Python gives them.
#pragma once

#include <stdexcept>
#include <string>

#include "outcore/page_cache.hpp"

namespace outcore::python {

[[nodiscard]] inline device::PageCache parse_cache(const std::string& name) {
  if (name == "auto") return device::PageCache::automatic;
  if (name == "buffered") return device::PageCache::buffered;
  if (name == "direct") return device::PageCache::direct;
  throw std::invalid_argument("page_cache is '" + name + "', expected 'auto', 'buffered' or 'direct'");
}

}  // namespace outcore::python
