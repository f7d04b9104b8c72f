// Distributions: which process holds which elements of an array, and where in its memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outcore/api.h"
#include "outcore/box.hpp"

namespace outcore {

/// Which process holds which elements: a grid of processes over the dimensions, the last varying fastest. The
/// memory of each process is row-major. Every method computes its answer in time that does not depend on the
/// number of processes (irregular: on its logarithm). Immutable; copies are cheap.
class OUTCORE_API Distribution {
 public:
  enum class Kind : std::uint8_t { regular, irregular, block_cyclic };

  // Shapes have 1 to max_rank dimensions, none negative. Arguments that do not fit together throw
  // Error(EINVAL).

  /// Blocks as equal as can be, on a grid chosen so that patches are nearly cubic. Processes beyond the grid
  /// (a prime number of them in a small array) hold nothing.
  [[nodiscard]] static Distribution regular(const Extents& shape, int processes);
  /// `begins`: for each dimension the first indices of its blocks, increasing from 0. The product of the
  /// numbers of blocks is at most the number of processes.
  [[nodiscard]] static Distribution irregular(const Extents& shape, int processes,
                                              std::span<const std::vector<std::int64_t>> begins);
  /// Blocks dealt out to a grid in turn, as ScaLAPACK does. Without a grid a nearly square one is chosen.
  [[nodiscard]] static Distribution block_cyclic(const Extents& shape, int processes, const Extents& block,
                                                 const std::optional<Extents>& grid = {});

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] int processes() const noexcept { return processes_; }
  [[nodiscard]] const Extents& shape() const noexcept { return shape_; }
  [[nodiscard]] const Extents& grid() const noexcept { return grid_; }
  /// Shape of a block; of the largest one where they differ.
  [[nodiscard]] Extents block() const noexcept;
  [[nodiscard]] std::string text() const;  ///< "regular, grid [2, 2]"

  [[nodiscard]] std::int64_t local_elements_max() const noexcept;  ///< the most that any process holds
  [[nodiscard]] int owner(const Extents& index) const;             ///< Error(EINVAL) if outside of the shape
  /// The box of a process; empty if it holds nothing. Error(EINVAL) for block_cyclic, which has no single
  /// box.
  [[nodiscard]] Box patch(int process) const;
  /// Shape of the memory of a process, row-major; for block_cyclic as ScaLAPACK's local array.
  [[nodiscard]] Extents local_shape(int process) const;

  /// Where an element lies: its process, and its position in that process's memory. `index` is inside.
  struct Location {
    int process;
    std::int64_t element;
  };
  [[nodiscard]] Location locate(std::span<const std::int64_t> index) const noexcept;

  using VisitPart = std::function<void(int process, const Box& part, std::int64_t element)>;
  /// Calls `visit(process, part, element)` for the parts of a box that lie in one block each, `element` being
  /// the position of the part's first element in the memory of the process. No communication. The box must be
  /// inside the shape.
  void for_each_part(const Box& box, const VisitPart& visit) const;
  /// The same for the parts that one process holds, without a visit to the others.
  void for_each_part_of(int process, const Box& box, const VisitPart& visit) const;

  /// Equal distributions place every element equally.
  friend OUTCORE_API bool operator==(const Distribution& a, const Distribution& b) noexcept;
  [[nodiscard]] std::uint64_t fingerprint() const;  ///< a hash of all its parameters

 private:
  /// One dimension: `blocks` blocks dealt out to `parts` processes in turn. Blocks have `size` elements, the
  /// first `longer` of them one more, and the last what is left; or they begin where `begins` says.
  struct Axis {
    std::int64_t extent = 0, blocks = 0, size = 0, longer = 0, longest_local = 0;
    std::int64_t parts = 1;
    std::vector<std::int64_t> begins;  // empty unless irregular; else blocks + 1 of them

    [[nodiscard]] std::int64_t begin(std::int64_t block) const noexcept;
    [[nodiscard]] std::int64_t block_of(std::int64_t index) const noexcept;
    [[nodiscard]] std::int64_t local_extent(std::int64_t part) const noexcept;
    friend bool operator==(const Axis&, const Axis&) = default;
  };

  Distribution(Kind kind, const Extents& shape, int processes);
  [[nodiscard]] const Axis& axis(int i) const noexcept { return axes_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::optional<Extents> coordinates(int process) const noexcept;
  void finish();
  void walk(const Box& box, const Extents& first_block, const Extents& block_step,
            const VisitPart& visit) const;

  Kind kind_;
  int processes_;
  Extents shape_, grid_;
  std::array<Axis, max_rank> axes_;
};

}  // namespace outcore
