// Global arrays: N-dimensional arrays in the memory of all processes, reached one-sidedly.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "outcore/box.hpp"
#include "outcore/element_type.hpp"
#include "outcore/world.hpp"

namespace outcore {

/// Which process holds which elements: a grid of processes over the dimensions, the last varying fastest.
class Distribution {
 public:
  /// Blocks as equal as can be, on a grid chosen so that patches are nearly cubic. Processes beyond the grid
  /// (a prime number of them in a small array) hold nothing.
  [[nodiscard]] static Distribution regular(const Extents& shape, int processes);
  /// For each dimension the first indices of its blocks, from 0 on, rising.
  [[nodiscard]] static Distribution irregular(const Extents& shape, int processes,
                                              std::span<const std::vector<std::int64_t>> begins);
  /// Blocks dealt out to a grid in turn, as ScaLAPACK does.
  [[nodiscard]] static Distribution block_cyclic(const Extents& shape, int processes, const Extents& block,
                                                 const Extents& grid);

  enum class Kind : std::uint8_t { regular, irregular, block_cyclic };
  [[nodiscard]] Kind kind() const noexcept;
  [[nodiscard]] const Extents& shape() const noexcept;
  [[nodiscard]] const Extents& grid() const noexcept;
  [[nodiscard]] std::int64_t local_elements_max() const noexcept;  ///< the most that any process holds
  [[nodiscard]] int owner(const Extents& index) const;
  /// The box of a process; empty if it holds nothing. Error(EINVAL) for block_cyclic, which has no single
  /// box.
  [[nodiscard]] Box patch(int process) const;
  /// Shape of the memory of a process, row-major; for block_cyclic as ScaLAPACK's local array.
  [[nodiscard]] Extents local_shape(int process) const;

  /// Calls `visit(process, part, element)` for the parts of a box that lie in one block each, `element` being
  /// the position of the part's first element in the memory of the process. Touches no other process.
  void for_each_part(
      const Box& box,
      const std::function<void(int process, const Box& part, std::int64_t element)>& visit) const;
  // (private members follow)
};

/// Memory of the caller: its first element, and strides in bytes.
struct Strided {
  std::byte* data = nullptr;
  Extents stride_bytes;
};

/// Collective to make and destroy. get, put, accumulate and the like are one-sided, from any thread; between
/// processes they are ordered by `sync` (or World::barrier).
class GlobalArray {
 public:
  GlobalArray(World& world, const Extents& shape, ElementType type);
  GlobalArray(World& world, ElementType type, Distribution distribution);

  [[nodiscard]] World& world() const noexcept;
  [[nodiscard]] const Extents& shape() const noexcept;
  [[nodiscard]] ElementType type() const noexcept;
  [[nodiscard]] const Distribution& distribution() const noexcept;
  [[nodiscard]] Strided local() const noexcept;  ///< the own patch, in place

  /// A transfer in several parts; complete when all are.
  class Request {
   public:
    void wait();
    [[nodiscard]] bool test();
    // (private members follow)
  };

  /// Error(EINVAL) if the box is not inside the array. `order` permutes: element (i0, i1, ...) of the box
  /// lies at memory position sum of memory.stride[k] * i_k, so a transposition is a matter of strides.
  [[nodiscard]] Request async_get(const Box& box, const Strided& memory) const;
  [[nodiscard]] Request async_put(const Box& box, const Strided& memory);
  [[nodiscard]] Request async_accumulate(const Box& box, const Strided& memory, const void* alpha);
  void get(const Box& box, const Strided& memory) const;
  void put(const Box& box, const Strided& memory);
  void accumulate(const Box& box, const Strided& memory, const void* alpha);
  std::int64_t read_increment(const Extents& index, std::int64_t value);  ///< int64 arrays; atomic
  void sync();                                                            ///< collective
  // gather/scatter/scatter_accumulate of index lists, strided sections: see the implementation's header
};

}  // namespace outcore
