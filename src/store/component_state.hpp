// What a component and its requests are made of.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "outcore/device/buffer.hpp"
#include "outcore/device/file.hpp"
#include "outcore/store/component.hpp"

namespace outcore::store {

inline std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

inline std::span<std::byte> part_of(std::span<std::byte> memory, std::int64_t offset, std::int64_t size) {
  return memory.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

/// What a request asks of the device at once: bytes of one or more slots that lie together.
struct Piece {
  std::int64_t first_slot = 0, count = 1;
  int side = 0;
  std::int64_t first_block = 0;    ///< reads of a part: the first block that is read
  std::int64_t offset = 0;         ///< in the file
  std::span<std::byte> disk{};     ///< memory for what is on the disk
  std::span<std::byte> decoded{};  ///< where it is decompressed to
  device::Request request{};
};

struct Component::State {
  SlotTable table;
  ComponentOptions options;
  mutable device::File file;
  std::mutex lost_mutex;
  std::exception_ptr lost;  ///< first failure of a write that nobody waited for

  State(const std::string& path, SlotTable made, const ComponentOptions& chosen, bool create);

  [[nodiscard]] const Geometry& geometry() const noexcept { return table.geometry(); }
  [[nodiscard]] bool encodes() const noexcept { return geometry().codec.codec != Codec::none; }
  [[nodiscard]] bool raw(std::int64_t slot) const noexcept {
    return table.stored_bytes(slot) == geometry().slot_bytes;
  }
  /// Whether so much space is better kept than given back.
  [[nodiscard]] bool keeps(std::int64_t unused_bytes) const;
  [[nodiscard]] std::string named(std::int64_t slot) const;
  void check_slots(const char* attempted, std::int64_t first, std::int64_t count,
                   std::size_t memory_bytes) const;
  void verify(std::int64_t slot, std::int64_t first_block, std::span<const std::byte> bytes,
              std::int64_t offset) const;
  void deliver_lost();
  [[nodiscard]] std::int64_t room_at(std::int64_t slot, int side) const noexcept;
  void give_back(std::int64_t first_slot, std::int64_t count) noexcept;
  void make_room(std::int64_t slot, int side, std::int64_t size);
  void publish(std::int64_t slot, int side, std::int64_t size, std::span<const std::uint32_t> checksums);
};

struct Component::Request::State {
  State(std::shared_ptr<Component::State> component, bool is_write)
      : owner(std::move(component)), write(is_write) {}
  ~State() { settle(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::shared_ptr<Component::State> owner;
  const bool write;
  device::Buffer staging;
  std::vector<Piece> pieces;
  std::vector<std::uint32_t> checksums;  ///< writes: geometry.blocks() for each slot
  std::vector<std::int64_t> stored;      ///< writes: for each slot
  std::int64_t first_slot = 0;
  std::size_t next_piece = 0;  ///< first one that was not waited for

  void begin(const Piece& piece);
  void note_written(std::int64_t slot, std::span<const std::byte> stored_bytes);
  void finish(Piece& piece);
  void finish_write(const Piece& piece);
  void finish_read(const Piece& piece, std::int64_t moved);
  void finish_all();
  void settle() noexcept;
};

}  // namespace outcore::store
