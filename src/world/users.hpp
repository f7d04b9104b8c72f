// Users of the one-sided memory of a world: close lets each finish before it frees the memory.
#pragma once

#include <memory>

namespace outcore::world {

class User {
 public:
  virtual ~User() = default;
  /// Waits for operations under way, and refuses later ones. May be called again.
  virtual void finish() noexcept = 0;
};

}  // namespace outcore::world
