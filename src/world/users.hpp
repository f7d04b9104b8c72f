// Who uses one-sided memory of a world: a world that closes lets each finish before the memory goes.
#pragma once

#include <memory>

namespace outcore::world {

class User {
 public:
  virtual ~User() = default;
  /// Waits for what is under way, and refuses what comes later. May be called again.
  virtual void finish() noexcept = 0;
};

}  // namespace outcore::world
