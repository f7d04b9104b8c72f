// Which processes see a directory of the first one; this decides between shared and local placement.
#pragma once

#include <cstdint>
#include <string>

#include "outcore/placement.hpp"
#include "outcore/world.hpp"

namespace outcore::dio {

/// A file that process 0 creates in a directory, and that the others look for. A name alone is not enough:
/// another host may have a directory of the same name.
class Visibility {
 public:
  /// Process 0, in a step of a collective call: creates the mark. Throws Error if it cannot.
  void leave_mark(const std::string& directory);
  /// Collective. `directory` as this process names it.
  void look(World& world, const std::string& directory);
  /// Process 0 removes the mark, when all have looked.
  void remove_mark() const;

  [[nodiscard]] bool by_me() const noexcept { return by_me_; }
  [[nodiscard]] bool by_all() const noexcept { return by_all_; }
  /// The placement that `automatic` stands for.
  [[nodiscard]] Placement resolved(Placement wanted) const noexcept {
    if (wanted != Placement::automatic) return wanted;
    return by_all_ ? Placement::shared : Placement::local;
  }

  static constexpr const char* mark_name = "made-by";  ///< prefix of names of marks

 private:
  std::string mark_;  ///< path of the mark
  std::int64_t number_ = 0;
  bool by_me_ = false, by_all_ = false;
};

}  // namespace outcore::dio
