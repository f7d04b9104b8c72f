// Who uses one-sided memory of a world: a world that closes lets each finish before the memory goes.
#pragma once

#include <memory>

#include "outcore/world.hpp"

namespace outcore::world {

class User {
 public:
  virtual ~User() = default;
  /// Waits for what is under way, and refuses what comes later. May be called again.
  virtual void finish() noexcept = 0;
};

void add_user(const World& world, const std::shared_ptr<User>& user);
/// Lets all that are left finish. The world has no users afterwards.
void finish_users(const World& world) noexcept;

}  // namespace outcore::world
