// Services that all arrays of a world share: threads, procedures and memory that live as long as the world.
#pragma once

#include <string_view>

#include "array/transfer_queue.hpp"
#include "dio/chunks/service.hpp"
#include "outcore/world.hpp"

namespace outcore::array {

struct ArrayServices final : World::Companion {
  explicit ArrayServices(World& world) : queue(world), chunks(world) {}  ///< collective
  /// The services of a world. The first call makes them and is collective.
  [[nodiscard]] static ArrayServices& of(World& world);
  /// The existing services of a world; Error(EINVAL) if there are none.
  [[nodiscard]] static ArrayServices& present(World& world, std::string_view attempted);

  void closing() noexcept override { queue.closing(); }

  TransferQueue queue;
  dio::ChunkService chunks;
};

}  // namespace outcore::array
