// Boxes of arrays that are stored as tiles, each in one piece. A symmetry may give further tiles from stored
// ones.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "tensor/boxes.hpp"

namespace outcore::tensor {

/// The tiles of a layout.
class OUTCORE_SIBLING TileTable {
 public:
  /// The source of a tile: number of the stored tile, -1 if it is zero; and a place in `images` with axes and
  /// sign: tile == sign * transpose(stored, axes).
  struct Source {
    std::int32_t number;
    std::int32_t image;
  };
  struct Image {
    std::vector<int> axes;
    int sign;
  };

  /// cuts: for each axis the boundaries of its tiles; sources: for each tile of the grid, row-major; images:
  /// the first is the identity. Throws Error(EINVAL) for tiles and axes that do not exist.
  TileTable(std::vector<std::vector<std::int64_t>> cuts, std::vector<Source> sources,
            std::vector<Image> images);

  [[nodiscard]] int rank() const noexcept { return static_cast<int>(cuts_.size()); }
  /// Where each stored tile begins, by number, if all lie one after another.
  [[nodiscard]] const std::vector<std::int64_t>& offsets() const noexcept { return offsets_; }
  /// Calls visit(source, image, whether it is stored itself, first element in the array, extents) for each
  /// tile of a box that is not zero. Throws Error(EINVAL) for a box that cuts a tile.
  template <class Visit>
  void each_tile(const Box& box, const Visit& visit) const;

 private:
  [[nodiscard]] Box tiles_of(const Box& box) const;

  std::vector<std::vector<std::int64_t>> cuts_;
  std::vector<Source> sources_;
  std::vector<Image> images_;
  std::vector<std::int64_t> offsets_;
};

/// Memory of tiles on their way. The next tile of the same size takes memory that was given back, so that the
/// system need not clear pages for each.
class TileMemory {
 public:
  using Memory = std::unique_ptr<std::byte[]>;

  explicit TileMemory(std::int64_t max_bytes) : max_bytes_(max_bytes) {}

  [[nodiscard]] bool has_room(std::int64_t bytes) const { return used_ == 0 || used_ + bytes <= max_bytes_; }
  /// Allocates memory, which counts until it is given back, also if this throws std::bad_alloc.
  Memory take(std::int64_t bytes);
  void give(Memory memory, std::int64_t bytes) noexcept;
  [[nodiscard]] std::int64_t free_bytes() const { return free_bytes_; }

 private:
  std::int64_t max_bytes_, used_ = 0, free_bytes_ = 0;  ///< used_ + free_bytes_ <= max_bytes_, if one fits
  std::int64_t free_size_ = 0;                          ///< size of each free piece
  std::vector<Memory> free_;
};

/// An array of tiles in an array of one dimension.
class OUTCORE_SIBLING TiledBoxes : public Boxes {
 public:
  /// begins: where each stored tile begins in `flat`; empty: they lie one after another. max_bytes: the most
  /// memory of tiles on their way, in each direction, before a further one must wait.
  TiledBoxes(std::shared_ptr<const TileTable> table, std::shared_ptr<Boxes> flat,
             std::vector<std::int64_t> begins, ElementType type, std::int64_t max_bytes);

  void get(const Box& box, const Strided& to, Waits& waits) override;
  /// Tiles that are not stored are left out.
  void put(const Box& box, const Strided& from, bool add, Waits& waits) override;
  void prefetch(std::span<const Box> boxes) override;
  [[nodiscard]] std::optional<Strided> view(const Box& box) override;

 private:
  struct Piece;
  void start(const std::shared_ptr<Piece>& piece);
  void start_those_with_room();
  void finish(Piece& piece);
  [[nodiscard]] Box range(std::int32_t number, std::int64_t elements) const;

  std::shared_ptr<const TileTable> table_;
  std::shared_ptr<Boxes> flat_;
  std::vector<std::int64_t> begins_;
  ElementType type_;
  TileMemory got_, put_;
  std::deque<std::shared_ptr<Piece>> waiting_;    ///< gets that have no memory yet
  std::deque<std::shared_ptr<Piece>> under_way_;  ///< puts of copies
};

}  // namespace outcore::tensor
