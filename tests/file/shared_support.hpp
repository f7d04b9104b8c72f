// Worlds of threads for tests of shared files.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "outcore/shared_file.hpp"
#include "outcore/world.hpp"
#include "support/bytes.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

namespace shared {

using namespace outcore;
using file::SharedFile;
using file::SharedFileOptions;

/// Runs `body` in a world of `processes` threads; with `apart` each is a node of its own.
inline void run(int processes, bool apart, const std::function<void(World&)>& body) {
  const TemporaryDirectory scratch;
  transport::run_threads(processes, [&](std::unique_ptr<transport::Transport> transport) {
    World world(std::move(transport),
                {.memory_bytes = 256 << 20, .scratch = scratch.path(), .node_for_each_process = apart});
    body(world);
    world.close();
  });
}

/// Does this for 1 to 4 processes, on one node and each on a node of its own.
inline void run_all(const std::function<void(World&)>& body) {
  for (const bool apart : {false, true})
    for (int processes = 1; processes <= 4; ++processes) run(processes, apart, body);
}

/// Gives each node its own part of the file, although all see one directory here, so that transfers go
/// between nodes.
inline SharedFileOptions local(SharedFileOptions options = {}) {
  options.placement = Placement::local;
  return options;
}

inline Bytes read_back(SharedFile& file, std::int64_t offset, std::int64_t size) {
  Bytes bytes(static_cast<std::size_t>(size), std::byte{0xEE});
  file.read(bytes, offset);
  return bytes;
}

}  // namespace shared
