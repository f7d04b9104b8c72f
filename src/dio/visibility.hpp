// Which processes see a directory of the first one: what decides between shared and local placement.
#pragma once

#include <cstdint>
#include <string>

#include "outcore/placement.hpp"
#include "outcore/world.hpp"

namespace outcore::dio {

/// A file that process 0 leaves in a directory, for the others to look for. Not by name alone: another host
/// may have a directory of the same name.
class Visibility {
 public:
  /// Process 0, in a step of a collective call: leaves the mark. Throws Error if it cannot be made.
  void leave_mark(const std::string& directory);
  /// Collective. `directory` as this process names it.
  void look(World& world, const std::string& directory);
  /// Process 0, when all have looked.
  void remove_mark() const;

  [[nodiscard]] bool by_me() const noexcept { return by_me_; }
  [[nodiscard]] bool by_all() const noexcept { return by_all_; }
  /// What `automatic` comes to.
  [[nodiscard]] Placement resolved(Placement wanted) const noexcept {
    if (wanted != Placement::automatic) return wanted;
    return by_all_ ? Placement::shared : Placement::local;
  }

  static constexpr const char* mark_name = "made-by";  ///< names of marks begin so

 private:
  std::string mark_;  ///< path of the mark
  std::int64_t number_ = 0;
  bool by_me_ = false, by_all_ = false;
};

}  // namespace outcore::dio
