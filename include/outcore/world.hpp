// World: the processes that work together, their nodes, memory and scratch directories.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "outcore/transport/transport.hpp"

namespace outcore {

/// Accounts memory against a limit. Thread-safe.
class Budget {
 public:
  explicit Budget(std::int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  /// Throws Error(ENOMEM) with the numbers if it does not fit; `what` is named in the message.
  void reserve(std::int64_t size_bytes, std::string_view what);
  void release(std::int64_t size_bytes) noexcept;
  [[nodiscard]] std::int64_t limit_bytes() const noexcept { return limit_bytes_; }
  [[nodiscard]] std::int64_t used_bytes() const noexcept;
  [[nodiscard]] std::int64_t peak_bytes() const noexcept;

 private:
  mutable std::mutex mutex_;
  std::int64_t limit_bytes_, used_bytes_ = 0, peak_bytes_ = 0;
};

struct WorldOptions {
  std::int64_t memory_bytes = 0;  ///< budget of this process; 0: half of its share of the node's memory
  std::string scratch;            ///< directory for scratch; empty: chosen as file::default_scratch does
  /// Each process is a node of its own, so that the ways between nodes are taken on one machine. Also by
  /// OUTCORE_NODES=processes.
  bool node_for_each_process = false;
};

/// Collective, to make and to destroy. Methods marked so are called by all processes in the same order.
class World {
 public:
  explicit World(std::unique_ptr<transport::Transport> transport, const WorldOptions& options = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  [[nodiscard]] int node() const noexcept;  ///< number of the node of this process, from 0
  [[nodiscard]] int node_count() const noexcept;
  [[nodiscard]] int node_rank() const noexcept;  ///< of this process on its node
  [[nodiscard]] int node_size() const noexcept;
  [[nodiscard]] transport::Transport& transport() noexcept;
  [[nodiscard]] transport::Transport& node_transport() noexcept;  ///< the processes of this node
  [[nodiscard]] Budget& budget() noexcept;
  [[nodiscard]] const std::string& scratch() const noexcept;  ///< directory of this process's scratch

  void barrier();  ///< collective; flushes one-sided operations first

  /// The gate of every collective call. Runs `step` at this process, then tells the others how it went: if it
  /// threw anywhere, all throw the error of the lowest rank that did. If the processes came with different
  /// fingerprints (of what they call and with which arguments), none runs the step and all throw
  /// Error(EINVAL) that names a process that differs. Collective.
  void together(std::string_view what, std::uint64_t fingerprint, const std::function<void()>& step);

  /// A piece of one-sided memory, at the same offset in every process. It comes from a pool: one segment
  /// serves many arrays. Zero at first. Collective to allocate and to destroy, in the same order everywhere.
  class Region {
   public:
    Region() = default;
    Region(Region&& other) noexcept;
    Region& operator=(Region&& other) noexcept;
    ~Region();
    [[nodiscard]] transport::Segment& segment() const noexcept { return *segment_; }
    [[nodiscard]] std::int64_t offset() const noexcept { return offset_; }
    [[nodiscard]] std::byte* local() const noexcept { return segment_->local() + offset_; }
    [[nodiscard]] std::int64_t size_bytes() const noexcept { return size_bytes_; }
    [[nodiscard]] explicit operator bool() const noexcept { return segment_ != nullptr; }

   private:
    friend class World;
    World* world_ = nullptr;
    transport::Segment* segment_ = nullptr;
    std::int64_t offset_ = 0, size_bytes_ = 0;
  };
  [[nodiscard]] Region allocate(std::int64_t size_bytes, std::string_view what);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A number that all processes count up, for dynamic distribution of tasks. Collective to make and destroy.
class Counter {
 public:
  explicit Counter(World& world);
  std::int64_t next(std::int64_t count = 1);  ///< adds, and returns the value before; not collective
  void reset();                               ///< collective

 private:
  World& world_;
  World::Region region_;
};

/// A lock between processes (and threads). Fair; waits asleep. Collective to make and destroy.
class Lock {
 public:
  explicit Lock(World& world);
  void lock();
  void unlock();

 private:
  World& world_;
  World::Region region_;
  std::mutex threads_;
};

/// FNV-1a over anything that can be printed into bytes; for fingerprints.
[[nodiscard]] std::uint64_t fingerprint(std::span<const std::byte> bytes,
                                        std::uint64_t seed = 0xcbf29ce484222325);

}  // namespace outcore
