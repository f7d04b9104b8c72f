// Node arrays: N-dimensional arrays that the processes of one node share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "outcore/api.h"
#include "outcore/box.hpp"
#include "outcore/element_type.hpp"
#include "outcore/memory.hpp"
#include "outcore/origin.hpp"
#include "outcore/world.hpp"

namespace outcore {

/// Row-major, zero at first, loaded from and stored to by all processes of a node directly; each node has one
/// of its own. To make one, `barrier` and `close` are collective among the processes of the node only, which
/// call them in the same order; other nodes take no part. Its bytes are divided evenly among the budgets of
/// these processes, so a node accounts for them once.
class OUTCORE_API NodeArray {
 public:
  /// At all processes of the node: Error(ENOMEM) if a budget does not allow it, Error(EINVAL) for a shape
  /// that is none, or if they differ in their arguments.
  NodeArray(World& world, const Extents& shape, ElementType type);
  /// Shape and type are made in the collective gate: if `make` throws at one process, all throw.
  using Make = std::function<Extents(ElementType& type)>;
  NodeArray(World& world, const Make& make);
  /// Not collective: the memory is gone when the last process has destroyed or closed its array.
  ~NodeArray();
  NodeArray(const NodeArray&) = delete;
  NodeArray& operator=(const NodeArray&) = delete;

  [[nodiscard]] World& world() const noexcept { return world_; }
  [[nodiscard]] const Extents& shape() const noexcept { return shape_; }
  [[nodiscard]] ElementType type() const noexcept { return type_; }
  /// All of it, in place. Error(EBADF) after close.
  [[nodiscard]] Strided view() const;
  /// The same as elements, in C order. Throws Error(EINVAL) if T is not their type.
  template <Element T>
  [[nodiscard]] std::span<T> view() const {
    return elements_in_place<T>(view().data, shape_, type_, "node array");
  }
  /// Of the node. What its processes have stored before is seen by their loads afterwards.
  void barrier();
  /// Of arrays of int32: stores an element, and wakes those that wait for it. What this process has stored
  /// before is seen by a process whose `wait_for` finds the value. Error(EINVAL) for another type, or an
  /// element that is not there.
  void post(std::int64_t element, std::int32_t value);
  /// Sleeps until an element is at least `least`, as `post` has stored it, but no longer than `timeout`:
  /// whether it is. Any thread; nothing is collective. Errors as of `post`, and Error(ECONNRESET) where a
  /// wait has ended in vain, and a process of the node has died.
  [[nodiscard]] bool wait_for(std::int64_t element, std::int32_t least, std::chrono::microseconds timeout);
  /// Waits for the others; views must not be used afterwards. May be repeated.
  void close();
  [[nodiscard]] bool closed() const noexcept { return !segment_; }

 private:
  void release() noexcept;
  void watch();
  [[nodiscard]] std::atomic_ref<std::int32_t> word(std::int64_t element) const;

  World& world_;
  ElementType type_{};
  Extents shape_;
  std::int64_t part_bytes_ = 0;             ///< what this process accounts for
  std::atomic<std::int64_t> watched_s_{0};  ///< when it was last seen whether all live
  Owned<std::unique_ptr<transport::Segment>> segment_;
};

}  // namespace outcore
