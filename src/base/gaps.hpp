// Free runs of numbers, such as places of a file or bytes of memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace outcore {

/// Free numbers, as maximal runs of neighbours. Initially none. Not thread-safe.
class Gaps {
 public:
  /// Adds free numbers; none of them may be free already.
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
  /// Takes numbers from a run; the numbers before and behind them stay free.
  void take(Run run, std::int64_t first, std::int64_t count);

  std::map<std::int64_t, std::int64_t> runs_;                 ///< by first number: count
  std::set<std::pair<std::int64_t, std::int64_t>> by_count_;  ///< count, first number
  std::int64_t total_ = 0;
};

}  // namespace outcore
