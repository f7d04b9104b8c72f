// Copies of blocks that other processes own, for data that is read again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "outcore/world.hpp"

namespace outcore::dio {

/// Copies hold the bytes that their owners had when they were requested. They do not follow changes: a user
/// that needs newer ones must forget them. The most recently used ones are kept. Thread-safe; no function is
/// called with a lock held.
class BlockCopies {
 public:
  /// All copies have one size. Each takes its part of the budget; if the budget has other uses, there are
  /// fewer copies.
  BlockCopies(Budget& budget, std::int64_t max_bytes, std::int64_t block_bytes)
      : budget_(budget), max_blocks_(max_bytes / block_bytes), block_bytes_(block_bytes) {}

  /// Called once, now or when the block has arrived, by any thread, with the block or with the error.
  using Ready = std::function<void(const std::byte* block, const std::exception_ptr& failure)>;
  using Loaded = std::function<void(const std::exception_ptr& failure)>;
  /// Called if there is no copy: fetches the block into the memory, and tells when that is done.
  using Load = std::function<void(std::span<std::byte> memory, Loaded loaded)>;
  /// False, without any call, if there is no room for the block.
  [[nodiscard]] bool use(std::int64_t block, const Ready& ready, const Load& load);

  /// Forgets copies for which `stale` is true. Blocks on their way go only to the requests that already wait
  /// for them.
  void forget(const std::function<bool(std::int64_t block)>& stale);
  void forget(std::int64_t block);

 private:
  struct Copy;
  using Shared = std::shared_ptr<Copy>;
  using Entries = std::list<std::pair<std::int64_t, Shared>>;  // the one used last at the end

  [[nodiscard]] Shared add(std::int64_t block);
  void loaded(std::int64_t block, const Shared& copy, const std::exception_ptr& failure);

  Budget& budget_;
  const std::int64_t max_blocks_, block_bytes_;
  std::mutex mutex_;
  Entries entries_;
  std::unordered_map<std::int64_t, Entries::iterator> index_;
};

}  // namespace outcore::dio
