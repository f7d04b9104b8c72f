// Free runs of what is numbered: places of a file, bytes of memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace outcore {

/// Free numbers, as runs of neighbours; each run is as long as it can be. Nothing at first. Not thread-safe.
class Gaps {
 public:
  /// These numbers are free; none of them may be so already.
  void give(std::int64_t first, std::int64_t count);

  /// Takes the first numbers of the shortest run that is long enough. Null: there is none.
  [[nodiscard]] std::optional<std::int64_t> take_tightest(std::int64_t count);
  /// Takes the lowest numbers, from a multiple of `step` on. Null: no run has them.
  [[nodiscard]] std::optional<std::int64_t> take_lowest(std::int64_t count, std::int64_t step);

  [[nodiscard]] std::int64_t total() const noexcept { return total_; }

 private:
  using Run = std::map<std::int64_t, std::int64_t>::const_iterator;
  void insert(std::int64_t first, std::int64_t count);
  void erase(Run run);
  /// Of a run that has them: what is before and behind stays free.
  void take(Run run, std::int64_t first, std::int64_t count);

  std::map<std::int64_t, std::int64_t> runs_;                 ///< by first number: count
  std::set<std::pair<std::int64_t, std::int64_t>> by_count_;  ///< count, first number
  std::int64_t total_ = 0;
};

}  // namespace outcore
