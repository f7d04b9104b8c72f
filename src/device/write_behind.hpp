// Consecutive small writes, gathered into blocks. Blocks that go to the device are written while the next is
// filled. The caller copies blocks for the page cache itself, because they are in the cache of its core:
// another core would have to fetch them first. If such a copy had to wait (because too much of the page cache
// is not yet on the disk), the engine copies the next ones. Measured: [M5].
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/buffer.hpp"
#include "device/file.hpp"

namespace outcore::device {

class WriteBehind {
 public:
  WriteBehind(File& file, std::size_t block_bytes, unsigned blocks);

  [[nodiscard]] bool empty() const noexcept { return !filling_ && under_way_ == 0; }
  [[nodiscard]] std::int64_t end() const noexcept;  ///< of the last byte held; 0 if none

  /// Begins a run of writes at an offset; sends off bytes that were gathered before.
  void start(std::int64_t offset);
  /// Whether `take` would take data of this size.
  [[nodiscard]] bool gathers(std::int64_t offset, std::int64_t size_bytes) const noexcept {
    return filling_ && (offset == filling_->end() ||
                        (offset >= filling_->offset && offset + size_bytes <= filling_->end()));
  }
  /// Takes the data if it continues the run, or lies within the gathered bytes. Else returns false.
  bool take(std::span<const std::byte> data, std::int64_t offset);
  /// Takes the data if it continues the run within the block being filled and no block has been written
  /// meanwhile. Else returns false. Never waits, never throws.
  [[nodiscard]] bool take_held(std::span<const std::byte> data, std::int64_t offset) noexcept;
  /// Fills the buffer if one block holds all of the range. Else returns false.
  bool fetch(std::span<std::byte> buffer, std::int64_t offset) const;

  /// Puts every byte of the range that is held here into the file.
  void settle(std::int64_t offset, std::int64_t size_bytes);
  /// Puts everything into the file and gives the blocks back; then throws the first error.
  void drain();
  /// Throws the error of a block that could not be written. Never blocks.
  void check();

 private:
  struct Block {
    std::byte* memory = nullptr;
    std::int64_t offset = 0;
    std::size_t used = 0, limit = 0;
    Request request;
    bool under_way = false;
    bool copied = false;  ///< to the page cache, by the caller

    [[nodiscard]] std::int64_t end() const noexcept { return offset + static_cast<std::int64_t>(used); }
    [[nodiscard]] bool meets(std::int64_t from, std::int64_t to) const noexcept {
      return from < end() && to > offset;
    }
  };

  void append(std::span<const std::byte> data);
  void send(Block& block);
  void copy(Block& block);
  void finish(Block& block);
  Block& free_block();

  File& file_;
  std::size_t block_bytes_;
  Buffer memory_;  ///< of all blocks, while there is a run
  std::vector<Block> blocks_;
  Block* filling_ = nullptr;
  std::size_t next_ = 0;  ///< blocks are used in turn, so this one is free or was sent off first
  unsigned under_way_ = 0;
  unsigned not_copied_ = 0;  ///< blocks that the engine will get after a copy that had to wait
};

}  // namespace outcore::device
