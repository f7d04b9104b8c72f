// Global arrays: N-dimensional arrays in the memory of all processes, reached one-sidedly.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "outcore/api.h"
#include "outcore/box.hpp"
#include "outcore/distribution.hpp"
#include "outcore/element_type.hpp"
#include "outcore/memory.hpp"
#include "outcore/origin.hpp"
#include "outcore/request.hpp"
#include "outcore/world.hpp"

namespace outcore {

namespace array {
class Transfers;
}

/// An N-dimensional array in the memory of all processes of a world; initially zero. Construction, close and
/// destruction are collective, in the same order at all processes; the world must outlive the array. get,
/// put, accumulate and the like are one-sided: any thread calls them, and the processes that hold the
/// elements need not help; `sync` (or World::barrier) orders them between processes. Concurrent accumulates
/// of one element are atomic, concurrent gets and puts of one are not. After close all methods throw
/// Error(EBADF).
///
/// Boxes must lie inside the array, else Error(EINVAL). Memory that the caller passes must not be the array's
/// own.
class OUTCORE_API GlobalArray {
 public:
  /// Error(ENOMEM) at all processes if the array does not fit into the budget of one; Error(EINVAL) at all if
  /// their arguments differ.
  GlobalArray(World& world, const Extents& shape, ElementType type);
  GlobalArray(World& world, ElementType type, Distribution distribution);
  /// Type and distribution are made in the collective gate: if `make` throws at one process, all throw.
  using Make = std::function<Distribution(ElementType& type)>;
  GlobalArray(World& world, const Make& make);
  ~GlobalArray();  ///< waits for what this process has under way
  GlobalArray(GlobalArray&&) = delete;

  [[nodiscard]] World& world() const noexcept { return *world_; }
  /// A number that is equal at all processes, and different for each array of the world.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] const Extents& shape() const noexcept { return distribution_->shape(); }
  [[nodiscard]] ElementType type() const noexcept { return type_; }
  [[nodiscard]] std::size_t element_bytes() const noexcept { return element_bytes_; }
  [[nodiscard]] const Distribution& distribution() const noexcept { return *distribution_; }
  /// The patch of this process, in place, row-major, of shape distribution().local_shape(rank).
  [[nodiscard]] Strided local() const;
  /// The same as elements. Throws Error(EINVAL) if T is not their type.
  template <Element T>
  [[nodiscard]] std::span<T> local() const {
    return elements_in_place<T>(local().data, distribution_->local_shape(world_->rank()), type_, kind);
  }

  /// Keeps the array open for a component that makes many transfers, such as a collective transfer of a disk
  /// array in the background. close waits until all holds are released; Error(EBADF) once close has begun.
  [[nodiscard]] std::shared_ptr<void> hold() const;

  /// The array and its world may be closed before a request is waited for: close completes the request, which
  /// keeps its error. The destructor of the last copy of a request waits.
  ///
  /// `memory` is a range with all elements of the slices (or box) in C order, or an mdspan of their shape,
  /// whose strides may transpose it. Error(EINVAL) for elements of another type or shape. Elements that this
  /// process can load and store directly are copied before the call returns; the others are under way, and
  /// the memory is in use, until the request is complete.
  [[nodiscard]] Request get_async(const Slices& slices, const Elements& memory) const {
    return get_async(slices, memory.strided(slices.shape(), type_, kind));
  }
  [[nodiscard]] Request put_async(const Slices& slices, const ConstElements& memory) {
    return put_async(slices, memory.strided(slices.shape(), type_, kind));
  }
  /// Adds alpha times the memory. Types of 4 bytes and more.
  [[nodiscard]] Request accumulate_async(const Slices& slices, const ConstElements& memory,
                                         Factor alpha = 1) {
    const Factor::Value value = alpha.as(type_);
    return accumulate_async(slices, memory.strided(slices.shape(), type_, kind), value.bytes.data());
  }
  template <Temporary Range>
  Request put_async(const Slices& slices, Range&& memory) = delete;  ///< its memory would be gone
  template <Temporary Range>
  Request accumulate_async(const Slices& slices, Range&& memory,
                           Factor alpha = 1) = delete;  ///< its memory would be gone
  /// The same, and wait.
  void get(const Slices& slices, const Elements& memory) const { get_async(slices, memory).wait(); }
  void put(const Slices& slices, const ConstElements& memory) { put_async(slices, memory).wait(); }
  void accumulate(const Slices& slices, const ConstElements& memory, Factor alpha = 1) {
    accumulate_async(slices, memory, alpha).wait();
  }

  /// Single elements: `indices` holds the index of each, one after the other, `memory` the elements in that
  /// order, contiguous. All indices are checked before anything is moved. If two puts go to one element,
  /// either may be the last; accumulates add up.
  void gather(std::span<const std::int64_t> indices, const Elements& memory) const {
    gather(indices, memory.contiguous(scattered_shape(indices), type_, kind));
  }
  void scatter(std::span<const std::int64_t> indices, const ConstElements& memory) {
    scatter(indices, memory.contiguous(scattered_shape(indices), type_, kind));
  }
  void scatter_accumulate(std::span<const std::int64_t> indices, const ConstElements& memory,
                          Factor alpha = 1) {
    const Factor::Value value = alpha.as(type_);
    scatter_accumulate(indices, memory.contiguous(scattered_shape(indices), type_, kind), value.bytes.data());
  }

  /// The same with memory as bytes: element (i0, i1, ...) of the box lies at the sum of
  /// memory.stride_bytes[k] * i_k. `alpha` is one element of the array's type (null: one).
  [[nodiscard]] Request get_async(const Slices& slices, const Strided& memory) const;
  [[nodiscard]] Request put_async(const Slices& slices, const Strided& memory);
  [[nodiscard]] Request accumulate_async(const Slices& slices, const Strided& memory, const void* alpha);
  void get(const Slices& slices, const Strided& memory) const { get_async(slices, memory).wait(); }
  void put(const Slices& slices, const Strided& memory) { put_async(slices, memory).wait(); }
  void accumulate(const Slices& slices, const Strided& memory, const void* alpha) {
    accumulate_async(slices, memory, alpha).wait();
  }
  void gather(std::span<const std::int64_t> indices, std::byte* memory) const;
  void scatter(std::span<const std::int64_t> indices, const std::byte* memory);
  void scatter_accumulate(std::span<const std::int64_t> indices, const std::byte* memory, const void* alpha);

  /// Adds to an element of an int64 array, and returns the value before. Atomic.
  std::int64_t read_increment(const Extents& index, std::int64_t value);
  /// Collective. Completes the requests of this process; afterwards all processes see every put and
  /// accumulate that any process made before, also in local(). If nobody has waited for a put or accumulate
  /// that failed at any process, its error is thrown at all.
  void sync();
  /// Collective. Refuses new operations, waits for those under way (calls of other threads, requests that
  /// nobody has waited for, transfers of disk arrays), then frees the memory. May be repeated, also by
  /// several threads at once. Memory that local() returned must not be used any more. Throws as sync does,
  /// and is closed all the same.
  void close();
  [[nodiscard]] bool closed() const noexcept;

 private:
  static constexpr const char* kind = "global array";
  enum class Operation : std::uint8_t { get, put, accumulate };

  class Use;
  [[noreturn]] void refuse_closed() const;
  void check_open() const;
  void check(const Slices& slices, const Strided& memory) const;
  void check_accumulate() const;
  /// The shape {n} of a list of n indices.
  [[nodiscard]] Extents scattered_shape(std::span<const std::int64_t> indices) const;
  [[nodiscard]] const void* one_if_null(const void* alpha) const noexcept;
  void move(Operation operation, const transport::StridedTransfer& transfer, const void* alpha,
            std::vector<Request>& operations) const;
  [[nodiscard]] Request start(Operation operation, const Slices& slices, const Strided& memory,
                              const void* alpha) const;
  void scattered(Operation operation, std::span<const std::int64_t> indices, std::byte* memory,
                 const void* alpha) const;

  World* world_;
  ElementType type_{};
  std::size_t element_bytes_ = 0;
  std::optional<Distribution> distribution_;
  World::Region region_;
  std::uint64_t number_ = 0;
  Origin origin_;
  std::shared_ptr<array::Transfers> transfers_;
};

}  // namespace outcore
