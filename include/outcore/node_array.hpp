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

/// A row-major array in memory that all processes of a node load and store directly; initially zero. Each
/// node has its own. The constructors, `barrier` and `close` are collective over the processes of the node
/// only, which call them in the same order; other nodes take no part. The budgets of these processes share
/// the bytes evenly, so a node accounts for them once.
class OUTCORE_API NodeArray {
 public:
  /// Throws, at all processes of the node: Error(ENOMEM) if a budget does not allow it, Error(EINVAL) for an
  /// invalid shape, or if their arguments differ.
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
  /// The whole array, in place. Error(EBADF) after close.
  [[nodiscard]] Strided view() const;
  /// The same as elements, in C order. Throws Error(EINVAL) if T is not their type.
  template <Element T>
  [[nodiscard]] std::span<T> view() const {
    return elements_in_place<T>(view().data, shape_, type_, "node array");
  }
  /// A barrier of the node. Loads after it see the stores that processes of the node made before it.
  void barrier();
  /// Stores an element of an array of int32, and wakes the processes that wait for it. A process whose
  /// `wait_for` finds the value also sees what this process stored before. Error(EINVAL) for another type, or
  /// an element outside the array.
  void post(std::int64_t element, std::int32_t value);
  /// Sleeps until `post` has stored at least `least` in an element, but no longer than `timeout`. Returns
  /// whether the element has reached `least`. Any thread; not collective. Errors as of `post`, and
  /// Error(ECONNRESET) if the time has passed in vain and a process of the node has died.
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
  std::atomic<std::int64_t> watched_s_{0};  ///< when this process last checked that all live
  Owned<std::unique_ptr<transport::Segment>> segment_;
};

}  // namespace outcore
