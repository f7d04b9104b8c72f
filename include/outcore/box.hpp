// Index arithmetic of arrays: lists of up to eight numbers, boxes and slices of elements, strided memory.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "outcore/api.h"

namespace outcore {

inline constexpr int max_rank = 8;  ///< dimensions of an array

/// One number for each dimension: a shape, an index, strides. Empty is rank 0.
class OUTCORE_API Extents {
 public:
  Extents() = default;
  Extents(std::initializer_list<std::int64_t> values) : Extents(std::span(values.begin(), values.size())) {}
  /// Throws Error(EINVAL) for more than max_rank numbers.
  explicit Extents(std::span<const std::int64_t> values);
  [[nodiscard]] static Extents filled(int rank, std::int64_t value);

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] std::int64_t& operator[](int i) noexcept { return values_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::int64_t operator[](int i) const noexcept { return values_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::span<const std::int64_t> values() const noexcept {
    return {values_.data(), static_cast<std::size_t>(rank_)};
  }
  [[nodiscard]] std::int64_t product() const noexcept;  ///< of all numbers; 1 for rank 0
  [[nodiscard]] std::string text() const;               ///< "[3, 4]"
  friend bool operator==(const Extents&, const Extents&) = default;

 private:
  int rank_ = 0;
  std::array<std::int64_t, max_rank> values_{};  // those beyond rank_ stay 0
};

/// The elements from `begin` up to, but without, `end`.
struct OUTCORE_API Box {
  Extents begin, end;

  [[nodiscard]] static Box whole(const Extents& shape) { return {Extents::filled(shape.rank(), 0), shape}; }
  [[nodiscard]] int rank() const noexcept { return begin.rank(); }
  [[nodiscard]] Extents shape() const noexcept;
  [[nodiscard]] std::int64_t volume() const noexcept;  ///< number of elements; 0 if empty
  [[nodiscard]] bool empty() const noexcept { return volume() == 0; }
  [[nodiscard]] bool contains(const Box& other) const noexcept;
  [[nodiscard]] std::string text() const;  ///< "[0:3, 2:7]"
  friend bool operator==(const Box&, const Box&) = default;
};

/// Every step-th element of a box along each dimension, from box.begin on. A Box converts to the slices of
/// step 1. Transfers accept steps from 1 to max_step.
struct OUTCORE_API Slices {
  static constexpr std::int64_t max_step = std::int64_t{1} << 62;

  Slices() = default;
  Slices(const Box& all) : box(all), step(Extents::filled(all.rank(), 1)) {}
  Slices(const Extents& begin, const Extents& end) : Slices(Box{begin, end}) {}
  Slices(const Extents& begin, const Extents& end, const Extents& its_step)
      : box{begin, end}, step(its_step) {}

  Box box;
  Extents step;

  /// Number of elements along each dimension. Steps below one count as one.
  [[nodiscard]] Extents shape() const noexcept;
  /// Whether they lie in an array of this shape, and all steps are valid.
  [[nodiscard]] bool fits(const Extents& array_shape) const noexcept;
  /// Those of these elements that lie in a box, maybe none; `first` receives the index of the first of them
  /// within these slices.
  [[nodiscard]] Slices within(const Box& part, Extents& first) const noexcept;
  friend bool operator==(const Slices&, const Slices&) = default;
};

/// Memory of the caller without a type: the address of the first element, and strides in bytes. The lowest
/// level; see memory.hpp for memory with a type.
struct Strided {
  std::byte* data = nullptr;
  Extents stride_bytes;
};

[[nodiscard]] OUTCORE_API Box intersection(const Box& a,
                                           const Box& b) noexcept;  ///< of equal rank; maybe empty

/// Strides in bytes of contiguous row-major (C order) memory.
[[nodiscard]] OUTCORE_API Extents row_major(const Extents& shape, std::size_t element_bytes) noexcept;

/// `order` names each of 0 .. rank-1 once; throws Error(EINVAL) if not. permuted(x, order)[i] == x[order[i]],
/// as numpy.transpose(axes) does.
OUTCORE_API void check_permutation(std::span<const int> order, int rank);
[[nodiscard]] OUTCORE_API Extents permuted(const Extents& extents, std::span<const int> order);

/// Copies elements between two strided pieces of memory that do not overlap. Any strides, also negative or
/// permuted; fast for contiguous runs and for transpositions.
OUTCORE_API void copy_strided(std::byte* to, const Extents& to_stride_bytes, const std::byte* from,
                              const Extents& from_stride_bytes, const Extents& count,
                              std::size_t element_bytes);

}  // namespace outcore
