#include "outcore/extend/transport.hpp"

#include <cstring>

namespace outcore::transport {

void Segment::clear(std::int64_t offset, std::int64_t size_bytes) {
  std::memset(local_ + offset, 0, static_cast<std::size_t>(size_bytes));
  flush();
}

}  // namespace outcore::transport
