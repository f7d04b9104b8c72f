// How a file uses the page cache.
#pragma once

namespace outcore::device {

/// How a file uses the page cache.
enum class PageCache {
  automatic,  ///< reads what the page cache holds from there and the rest directly; writes through the page
              ///< cache while the expected size fits well into free memory, directly otherwise
  buffered,   ///< always through the page cache
  direct      ///< aligned middles bypass the page cache, ragged ends go through it
};

}  // namespace outcore::device
