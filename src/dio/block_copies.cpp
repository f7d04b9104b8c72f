#include "dio/block_copies.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "dio/staging.hpp"
#include "outcore/error.hpp"

namespace outcore::dio {

struct BlockCopies::Copy {
  Copy(Budget& budget, std::int64_t size) : memory(budget, size, "copies of what other processes keep") {}

  const BudgetedBuffer memory;
  bool here = false;  ///< never false again
  std::vector<Ready> waiting;
};

bool BlockCopies::use(std::int64_t block, const Ready& ready, const Load& load) {
  Shared copy;
  bool here = false;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = index_.find(block); found != index_.end()) {
      entries_.splice(entries_.end(), entries_, found->second);
      copy = found->second->second;
      here = copy->here;
      if (!here) {
        copy->waiting.push_back(ready);
        return true;
      }
    } else {
      copy = add(block);
      if (!copy) return false;
      copy->waiting.push_back(ready);
    }
  }
  if (here) {
    ready(copy->memory.span().data(), nullptr);
    return true;
  }
  load(copy->memory.span(),
       [this, block, copy](const std::exception_ptr& failure) { loaded(block, copy, failure); });
  return true;
}

/// Null if there is no room. Called with the lock held.
BlockCopies::Shared BlockCopies::add(std::int64_t block) {
  if (static_cast<std::int64_t>(entries_.size()) >= max_blocks_) {
    const auto oldest = std::ranges::find_if(entries_, [](const auto& each) { return each.second->here; });
    if (oldest == entries_.end()) return nullptr;
    index_.erase(oldest->first);
    entries_.erase(oldest);
  }
  try {
    const auto copy = std::make_shared<Copy>(budget_, block_bytes_);
    entries_.emplace_back(block, copy);
    index_[block] = std::prev(entries_.end());
    return copy;
  } catch (const Error&) {  // the budget has no room
    return nullptr;
  }
}

void BlockCopies::loaded(std::int64_t block, const Shared& copy, const std::exception_ptr& failure) {
  std::vector<Ready> waiting;
  {
    const std::lock_guard lock(mutex_);
    copy->here = !failure;
    waiting.swap(copy->waiting);
    const auto found = index_.find(block);
    if (failure && found != index_.end() && found->second->second == copy) {
      entries_.erase(found->second);
      index_.erase(found);
    }
  }
  for (const Ready& each : waiting) each(copy->memory.span().data(), failure);
}

void BlockCopies::forget(const std::function<bool(std::int64_t block)>& stale) {
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto here = entry++;
    if (!stale(here->first)) continue;
    index_.erase(here->first);
    entries_.erase(here);
  }
}

void BlockCopies::forget(std::int64_t block) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(block);
  if (found == index_.end()) return;
  entries_.erase(found->second);
  index_.erase(found);
}

}  // namespace outcore::dio
