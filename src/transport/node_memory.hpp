// Memory that the processes of one node share.
#pragma once

#include <memory>

#include "base/sibling.hpp"
#include "outcore/extend/transport.hpp"

namespace outcore::transport {

/// A segment that all processes of the transport reach by loads and stores. Collective; if it fails at one
/// process, all throw its error. The memory has no name in any file system. So the size of /dev/shm does not
/// limit it, and it is freed when the last process has ended. Measured: [M24].
[[nodiscard]] OUTCORE_SIBLING std::unique_ptr<Segment> node_memory(Transport& transport,
                                                                   std::size_t size_bytes);

}  // namespace outcore::transport
