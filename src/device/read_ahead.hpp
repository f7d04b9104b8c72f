// A run of consecutive small reads, served from blocks that were read ahead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "device/buffer.hpp"
#include "device/file.hpp"

namespace outcore::device {

class ReadAhead {
 public:
  /// `before` is called with the range of a block before it is read, and says whether it may be.
  ReadAhead(File& file, std::size_t block_bytes, unsigned blocks,
            std::function<bool(std::int64_t offset, std::int64_t size_bytes)> before);

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

  /// Begins a run of reads of about this size at an offset; drops blocks that were read ahead before.
  void start(std::int64_t offset, std::size_t request_bytes);
  /// Copies the part of the range that the run holds, from its beginning on; returns the bytes. Fewer than
  /// requested does not mean the end of the file, which only the file knows.
  std::size_t fetch(std::span<std::byte> buffer, std::int64_t offset);

  /// As fetch, if the block in use holds all of the range. Else returns false. Never waits.
  [[nodiscard]] bool fetch_held(std::span<std::byte> buffer, std::int64_t offset) noexcept;

  /// Updates the held bytes after a write to the file.
  void update(std::span<const std::byte> data, std::int64_t offset);
  /// Drops everything if any byte of the range is held.
  void forget(std::int64_t offset, std::int64_t size_bytes);
  void clear();  ///< drops everything and gives the blocks back

 private:
  struct Block {
    std::byte* memory = nullptr;
    std::int64_t offset = 0;
    std::size_t asked = 0, valid = 0;
    Request request;
    bool under_way = false;

    [[nodiscard]] std::int64_t end() const noexcept { return offset + static_cast<std::int64_t>(asked); }
  };

  [[nodiscard]] Block& block(std::size_t i) noexcept { return blocks_[(head_ + i) % blocks_.size()]; }
  [[nodiscard]] bool meets(std::int64_t from, std::int64_t to) noexcept;
  bool settle(Block& block);
  bool settle_in_run(Block& block);
  void retire_head();
  void read_on();
  bool take_resident();
  Block& next_block();

  File& file_;
  std::size_t block_bytes_;
  std::function<bool(std::int64_t, std::int64_t)> before_;
  Buffer memory_;              ///< of all blocks, while there is a run
  std::vector<Block> blocks_;  ///< a ring; those in use are consecutive in the file
  std::size_t head_ = 0, count_ = 0;
  std::int64_t next_offset_ = 0;  ///< where the next block to be read begins
  std::size_t next_bytes_ = 0;    ///< and its size: small at first, in case the run ends soon
  std::size_t consumed_ = 0;      ///< bytes that the caller has read in this run
  bool ended_ = false;            ///< a block was short: the end of the file was there
};

}  // namespace outcore::device
