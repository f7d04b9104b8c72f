#include "base/gaps.hpp"

#include <cassert>
#include <iterator>

namespace outcore {

void Gaps::give(std::int64_t first, std::int64_t count) {
  auto next = runs_.lower_bound(first);
  assert(next == runs_.end() || first + count <= next->first);
  if (next != runs_.end() && first + count == next->first) {
    count += next->second;
    erase(next++);
  }
  if (next != runs_.begin()) {
    const auto before = std::prev(next);
    assert(before->first + before->second <= first);
    if (before->first + before->second == first) {
      first = before->first;
      count += before->second;
      erase(before);
    }
  }
  insert(first, count);
}

std::optional<std::int64_t> Gaps::take_tightest(std::int64_t count) {
  const auto found = by_count_.lower_bound({count, 0});
  if (found == by_count_.end()) return std::nullopt;
  const std::int64_t first = found->second;
  take(runs_.find(first), first, count);
  return first;
}

std::optional<std::int64_t> Gaps::take_lowest(std::int64_t count, std::int64_t step) {
  for (auto run = runs_.cbegin(); run != runs_.cend(); ++run) {
    const std::int64_t first = (run->first + step - 1) / step * step;
    if (first + count > run->first + run->second) continue;
    take(run, first, count);
    return first;
  }
  return std::nullopt;
}

void Gaps::take(Run run, std::int64_t first, std::int64_t count) {
  const auto [begin, size] = *run;
  erase(run);
  if (first > begin) insert(begin, first - begin);
  if (first + count < begin + size) insert(first + count, begin + size - first - count);
}

void Gaps::insert(std::int64_t first, std::int64_t count) {
  runs_.emplace(first, count);
  by_count_.emplace(count, first);
  total_ += count;
}

void Gaps::erase(Run run) {
  total_ -= run->second;
  by_count_.erase({run->second, run->first});
  runs_.erase(run);
}

}  // namespace outcore
