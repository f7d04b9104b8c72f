// What arrays of a world have in common: threads, procedures and memory that live as long as the world.
#pragma once

#include <string_view>

#include "array/transfer_queue.hpp"
#include "dio/chunks/service.hpp"
#include "outcore/world.hpp"

namespace outcore::array {

struct ArrayServices final : World::Companion {
  explicit ArrayServices(World& world) : queue(world), chunks(world) {}  ///< collective
  /// Those of a world, made by the first call, which is collective.
  [[nodiscard]] static ArrayServices& of(World& world);
  /// Those that are there; Error(EINVAL) if there are none.
  [[nodiscard]] static ArrayServices& present(World& world, std::string_view attempted);

  void closing() noexcept override { queue.closing(); }

  TransferQueue queue;
  dio::ChunkService chunks;
};

}  // namespace outcore::array
