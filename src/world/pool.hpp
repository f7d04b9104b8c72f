// One-sided memory for regions: a few segments, divided among many.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "outcore/extend/transport.hpp"
#include "outcore/world.hpp"
#include "world/space.hpp"

namespace outcore::world {

/// A region in the pool. Its owner may outlive the pool.
struct Entry {
  Allocation allocation;
  std::atomic<transport::Segment*> segment{nullptr};  ///< null once the world was closed
  std::atomic<std::uint32_t> uses{0};                 ///< operations under way, which the end waits for
  std::atomic<bool> released{false};                  ///< destroyed by this process
  std::int64_t size_bytes = 0;
  std::shared_ptr<Budget> budget;
};

class Pool {
 public:
  Pool(transport::Transport& transport, bool shared) : transport_(transport), shared_(shared) {}
  ~Pool();  ///< collective

  /// Collective. The caller has agreed with the others on the size, and reserved the budget.
  [[nodiscard]] std::shared_ptr<Entry> allocate(std::int64_t size_bytes);
  void flush();

 private:
  bool reclaim();
  void add_segment(std::int64_t size_bytes);

  transport::Transport& transport_;
  bool shared_;
  SegmentSpace space_;
  std::mutex mutex_;  // guards segments_, which flush may walk at any time
  std::map<int, std::unique_ptr<transport::Segment>> segments_;
  int next_segment_ = 0;
  std::map<std::int64_t, std::shared_ptr<Entry>> entries_;  // by number: the same in all processes
  std::int64_t next_entry_ = 0;
};

}  // namespace outcore::world
