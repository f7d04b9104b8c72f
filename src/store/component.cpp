#include "outcore/store/component.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <utility>

#include "outcore/device/buffer.hpp"
#include "outcore/error.hpp"
#include "outcore/store/checksum.hpp"

namespace outcore::store {
namespace {

/// Slots that follow one another are moved in requests of up to this size: large enough to cost little, small
/// enough to be checked while the next one is under way.
constexpr std::int64_t most_piece_bytes = 4 << 20;

std::string hex(std::uint32_t value) {
  char text[11];
  std::snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::span<std::byte> part_of(std::span<std::byte> memory, std::int64_t offset, std::int64_t size) {
  return memory.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

/// What a request asks of the device at once: bytes of one or more slots that lie together.
struct Piece {
  std::int64_t first_slot = 0, count = 1;
  int side = 0;
  std::int64_t first_block = 0;    ///< reads of a part: the first block that is read
  std::int64_t offset = 0;         ///< in the file
  std::span<std::byte> disk{};     ///< memory for what is on the disk
  std::span<std::byte> wanted{};   ///< where it goes, if that is elsewhere
  std::int64_t wanted_offset = 0;  ///< in the slot, of what is wanted
  device::Request request{};
};

}  // namespace

struct Component::State {
  SlotTable table;
  ComponentOptions options;
  mutable device::File file;
  /// With a codec, for each slot: bytes from its beginning on that have space, at least.
  std::vector<std::uint32_t> room;
  std::mutex lost_mutex;
  std::exception_ptr lost;  ///< first failure of a write that nobody waited for

  State(const std::string& path, SlotTable made, const ComponentOptions& chosen, bool create);

  [[nodiscard]] const Geometry& geometry() const noexcept { return table.geometry(); }
  [[nodiscard]] bool encodes() const noexcept { return geometry().codec.codec != Codec::none; }
  [[nodiscard]] bool raw(std::int64_t slot) const noexcept {
    return table.stored_bytes(slot) == geometry().slot_bytes;
  }
  [[nodiscard]] std::string named(std::int64_t slot) const;
  void check_slots(const char* attempted, std::int64_t first, std::int64_t count,
                   std::size_t memory_bytes) const;
  void verify(std::int64_t slot, std::int64_t first_block, std::span<const std::byte> bytes,
              std::int64_t offset) const;
  void deliver_lost();
  [[nodiscard]] std::int64_t room_at(std::int64_t slot, int side) const noexcept;
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

// ---- the file and its table

Component::State::State(const std::string& path, SlotTable made, const ComponentOptions& chosen, bool create)
    : table(std::move(made)),
      options(chosen),
      file(path, {.create = create,
                  .exclusive = create,
                  .read_only = chosen.read_only,
                  .cache = chosen.cache,
                  .expected_bytes = table.geometry().file_bytes(),
                  .engine = chosen.engine,
                  .unlink_after_open = chosen.unlink_after_open}),
      room(static_cast<std::size_t>(encodes() ? geometry().slots : 0)) {
  for (std::size_t i = 0; i < room.size(); ++i)
    room[i] = static_cast<std::uint32_t>(
        round_up(table.stored_bytes(static_cast<std::int64_t>(i)), Geometry::page_bytes));
}

std::string Component::State::named(std::int64_t slot) const {
  return "slot " + std::to_string(slot) + (options.describe ? ", " + options.describe(slot) : "");
}

void Component::State::check_slots(const char* attempted, std::int64_t first, std::int64_t count,
                                   std::size_t memory_bytes) const {
  if (first < 0 || count < 0 || first > geometry().slots || count > geometry().slots - first)
    throw Error(EINVAL, {.attempted = attempted,
                         .path = file.path(),
                         .detail = std::to_string(count) + " slots from " + std::to_string(first) +
                                   " on; there are " + std::to_string(geometry().slots)});
  if (static_cast<std::int64_t>(memory_bytes) != count * geometry().stride_bytes())
    throw Error(EINVAL, {.attempted = attempted,
                         .path = file.path(),
                         .size_bytes = static_cast<std::int64_t>(memory_bytes),
                         .detail = "memory for " + std::to_string(count) + " slots must have " +
                                   std::to_string(count * geometry().stride_bytes()) + " bytes"});
}

/// Whether the blocks from `first_block` on are what was written. `bytes` are all of them, read at `offset`.
void Component::State::verify(std::int64_t slot, std::int64_t first_block, std::span<const std::byte> bytes,
                              std::int64_t offset) const {
  const auto expected = table.checksums(slot);
  const auto block_bytes = static_cast<std::size_t>(geometry().block_bytes);
  for (std::size_t at = 0; at < bytes.size(); at += block_bytes) {
    const std::size_t block = static_cast<std::size_t>(first_block) + at / block_bytes;
    const auto part = bytes.subspan(at, std::min(block_bytes, bytes.size() - at));
    const std::uint32_t found = crc32c(part);
    if (found == expected[block]) continue;
    throw Error(EIO, {.attempted = "read",
                      .path = file.path(),
                      .offset = offset + static_cast<std::int64_t>(at),
                      .size_bytes = static_cast<std::int64_t>(part.size()),
                      .detail = "damaged: block " + std::to_string(block) + " of " + named(slot) +
                                " has checksum " + hex(found) + ", expected " + hex(expected[block])});
  }
}

void Component::State::deliver_lost() {
  std::lock_guard lock(lost_mutex);
  if (lost) std::rethrow_exception(std::exchange(lost, nullptr));
}

std::int64_t Component::State::room_at(std::int64_t slot, int side) const noexcept {
  return encodes() && table.written(slot) && table.side(slot) == side ? room[static_cast<std::size_t>(slot)]
                                                                      : 0;
}

/// Before a version is written over a smaller one: a full disk shall not leave something of both. Reserving
/// waits for all direct I/O of the file, hence the note of what a slot has already.
void Component::State::make_room(std::int64_t slot, int side, std::int64_t size) {
  const std::int64_t before = room_at(slot, side), after = round_up(size, Geometry::page_bytes);
  if (before > 0 && after > before) file.reserve(geometry().offset_of(slot, side) + before, after - before);
}

/// A version has been written. Much space that is not needed any more is given back, little is not: that
/// waits as reserving does.
void Component::State::publish(std::int64_t slot, int side, std::int64_t size,
                               std::span<const std::uint32_t> checksums) {
  const std::int64_t before = room_at(slot, side), after = round_up(size, Geometry::page_bytes);
  table.set(slot, side, size, checksums);
  if (!encodes()) return;
  const bool shrinks = before > 2 * after;
  room[static_cast<std::size_t>(slot)] =
      static_cast<std::uint32_t>(shrinks ? after : std::max(before, after));
  if (shrinks) file.punch(geometry().offset_of(slot, side) + after, before - after);
}

Component::Component(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Component::Component(Component&&) noexcept = default;
Component& Component::operator=(Component&& other) noexcept {
  state_.swap(other.state_);
  return *this;
}

Component::~Component() {
  try {
    if (state_) close();
  } catch (const std::exception&) {  // documented: call close() to see it
  }
}

Component Component::create(const std::string& path, const Geometry& geometry,
                            const ComponentOptions& options) {
  auto state = std::make_shared<State>(path, SlotTable(geometry), options, true);
  try {
    // All of its length at once: a file that grows is written by one request at a time on most file systems.
    state->file.truncate(geometry.file_bytes());
    if (options.preallocate) state->file.preallocate(geometry.slots * geometry.stride_bytes());
  } catch (...) {
    if (!options.unlink_after_open) std::remove(path.c_str());
    throw;
  }
  return Component(std::move(state));
}

Component Component::open(const std::string& path, SlotTable table, const ComponentOptions& options) {
  auto state = std::make_shared<State>(path, std::move(table), options, false);
  const std::int64_t length = state->file.length(), need = state->geometry().file_bytes();
  if (length != need)
    throw Error(EIO, {.attempted = "open",
                      .path = path,
                      .detail = std::string(length < need ? "truncated" : "too long") + ": have " +
                                std::to_string(length) + " bytes, need " + std::to_string(need)});
  return Component(std::move(state));
}

const Geometry& Component::geometry() const noexcept {
  return state_->geometry();
}
const SlotTable& Component::table() const noexcept {
  return state_->table;
}
const std::string& Component::path() const noexcept {
  return state_->file.path();
}

// ---- writing

Component::Request Component::async_write(std::int64_t first_slot, std::int64_t count,
                                          std::span<std::byte> memory) {
  state_->check_slots("write", first_slot, count, memory.size());
  const Geometry& geometry = state_->geometry();
  const std::int64_t stride = geometry.stride_bytes();
  Request made(std::make_unique<Request::State>(state_, true));
  Request::State& request = *made.state_;
  request.first_slot = first_slot;
  request.checksums.resize(static_cast<std::size_t>(count * geometry.blocks()));
  request.stored.resize(static_cast<std::size_t>(count));
  if (state_->encodes()) request.staging = device::Buffer(memory.size());

  Piece raw{.count = 0};  // slots that are written as they are, and lie together
  const auto write_raw = [&] {
    if (raw.count == 0) return;
    raw.disk = part_of(memory, (raw.first_slot - first_slot) * stride, raw.count * stride);
    raw.offset = geometry.offset_of(raw.first_slot, raw.side);
    request.begin(raw);
    // Now that the device is busy.
    for (std::int64_t i = 0; i < raw.count; ++i)
      request.note_written(raw.first_slot + i, part_of(raw.disk, i * stride, geometry.slot_bytes));
    raw.count = 0;
  };
  for (std::int64_t slot = first_slot; slot < first_slot + count; ++slot) {
    const int side = state_->table.next_side(slot);
    const auto content = part_of(memory, (slot - first_slot) * stride, stride);
    if (state_->encodes()) {
      // Where no page is saved the chunk is better left as it is.
      const auto room = part_of(request.staging.span(), (slot - first_slot) * stride, stride);
      const std::size_t size = encode(geometry.codec, geometry.element_bytes,
                                      content.first(static_cast<std::size_t>(geometry.slot_bytes)),
                                      room.first(static_cast<std::size_t>(stride - Geometry::page_bytes)));
      if (size > 0) {
        write_raw();
        state_->make_room(slot, side, static_cast<std::int64_t>(size));
        const auto pages = room.first(
            static_cast<std::size_t>(round_up(static_cast<std::int64_t>(size), Geometry::page_bytes)));
        std::ranges::fill(pages.subspan(size), std::byte{0});
        request.begin(
            {.first_slot = slot, .side = side, .offset = geometry.offset_of(slot, side), .disk = pages});
        request.note_written(slot, pages.first(size));
        continue;
      }
    }
    state_->make_room(slot, side, geometry.slot_bytes);
    std::ranges::fill(content.subspan(static_cast<std::size_t>(geometry.slot_bytes)), std::byte{0});
    if (raw.count > 0 && (raw.side != side || raw.first_slot + raw.count != slot ||
                          (raw.count + 1) * stride > most_piece_bytes))
      write_raw();
    if (raw.count == 0) raw = {.first_slot = slot, .count = 0, .side = side};
    ++raw.count;
  }
  write_raw();
  return made;
}

void Component::Request::State::begin(const Piece& piece) {
  pieces.push_back(piece);  // first: what is under way must be known
  try {
    pieces.back().request = write ? owner->file.async_write(piece.disk, piece.offset)
                                  : owner->file.async_read(piece.disk, piece.offset);
  } catch (...) {
    pieces.pop_back();
    throw;
  }
}

void Component::Request::State::note_written(std::int64_t slot, std::span<const std::byte> bytes) {
  const Geometry& geometry = owner->geometry();
  const auto block_bytes = static_cast<std::size_t>(geometry.block_bytes);
  const std::int64_t i = slot - first_slot;
  stored[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(bytes.size());
  std::uint32_t* next = &checksums[static_cast<std::size_t>(i * geometry.blocks())];
  for (std::size_t at = 0; at < bytes.size(); at += block_bytes)
    *next++ = crc32c(bytes.subspan(at, std::min(block_bytes, bytes.size() - at)));
}

void Component::Request::State::finish_write(const Piece& piece) {
  const Geometry& geometry = owner->geometry();
  for (std::int64_t slot = piece.first_slot; slot < piece.first_slot + piece.count; ++slot) {
    const std::int64_t i = slot - first_slot, size = stored[static_cast<std::size_t>(i)];
    owner->publish(slot, piece.side, size,
                   std::span(checksums).subspan(static_cast<std::size_t>(i * geometry.blocks()),
                                                static_cast<std::size_t>(geometry.blocks_in(size))));
  }
}

// ---- reading

Component::Request Component::async_read(std::int64_t first_slot, std::int64_t count,
                                         std::span<std::byte> memory) const {
  state_->check_slots("read", first_slot, count, memory.size());
  const Geometry& geometry = state_->geometry();
  const SlotTable& table = state_->table;
  const std::int64_t stride = geometry.stride_bytes();
  Request made(std::make_unique<Request::State>(state_, false));
  Request::State& request = *made.state_;
  const std::int64_t end = first_slot + count;
  for (std::int64_t slot = first_slot; slot < end;) {
    const auto content = part_of(memory, (slot - first_slot) * stride, stride);
    if (!table.written(slot)) {
      std::ranges::fill(content, std::byte{0});
      ++slot;
      continue;
    }
    Piece piece{.first_slot = slot, .side = table.side(slot)};
    piece.offset = geometry.offset_of(slot, piece.side);
    if (state_->raw(slot)) {
      const auto joins = [&](std::int64_t next) {
        return next < end && state_->raw(next) && table.side(next) == piece.side &&
               (next + 1 - slot) * stride <= most_piece_bytes;
      };
      while (joins(slot + piece.count)) ++piece.count;
      piece.disk = part_of(memory, (slot - first_slot) * stride, piece.count * stride);
    } else {
      if (request.staging.size() == 0) request.staging = device::Buffer(memory.size());
      piece.disk = part_of(request.staging.span(), (slot - first_slot) * stride,
                           round_up(table.stored_bytes(slot), Geometry::page_bytes));
      piece.wanted = content.first(static_cast<std::size_t>(geometry.slot_bytes));
    }
    slot += piece.count;
    request.begin(piece);
  }
  return made;
}

Component::Request Component::async_read_part(std::int64_t slot, std::int64_t offset,
                                              std::span<std::byte> memory) const {
  const Geometry& geometry = state_->geometry();
  state_->check_slots("read", slot, 1, static_cast<std::size_t>(geometry.stride_bytes()));
  const auto size = static_cast<std::int64_t>(memory.size());
  if (offset < 0 || offset > geometry.slot_bytes || size > geometry.slot_bytes - offset)
    throw Error(EINVAL, {.attempted = "read",
                         .path = path(),
                         .size_bytes = size,
                         .detail = "byte " + std::to_string(offset) + " and on of a slot of " +
                                   std::to_string(geometry.slot_bytes)});
  Request made(std::make_unique<Request::State>(state_, false));
  if (!state_->table.written(slot)) std::ranges::fill(memory, std::byte{0});
  if (!state_->table.written(slot) || size == 0) return made;

  const bool raw = state_->raw(slot);
  const std::int64_t block = geometry.block_bytes;
  const std::int64_t first = raw ? offset / block : 0;
  const std::int64_t end = std::min(raw ? round_up(offset + size, block) : geometry.stride_bytes(),
                                    round_up(state_->table.stored_bytes(slot), Geometry::page_bytes));
  Piece piece{.first_slot = slot,
              .side = state_->table.side(slot),
              .first_block = first,
              .wanted = memory,
              .wanted_offset = offset};
  piece.offset = geometry.offset_of(slot, piece.side) + first * block;
  made.state_->staging = device::Buffer(static_cast<std::size_t>(end - first * block));
  piece.disk = made.state_->staging.span();
  made.state_->begin(piece);
  return made;
}

void Component::Request::State::finish_read(const Piece& piece, std::int64_t moved) {
  const Geometry& geometry = owner->geometry();
  if (moved != static_cast<std::int64_t>(piece.disk.size()))
    throw Error(EIO, {.attempted = "read",
                      .path = owner->file.path(),
                      .offset = piece.offset + moved,
                      .size_bytes = static_cast<std::int64_t>(piece.disk.size()) - moved,
                      .detail = "truncated: the file ends here, in " +
                                owner->named(piece.first_slot + moved / geometry.stride_bytes())});
  for (std::int64_t i = 0; i < piece.count; ++i) {
    const std::int64_t slot = piece.first_slot + i, at = i * geometry.stride_bytes();
    const std::int64_t there = owner->table.stored_bytes(slot) - piece.first_block * geometry.block_bytes;
    const auto bytes =
        part_of(piece.disk, at, std::min(there, static_cast<std::int64_t>(piece.disk.size()) - at));
    owner->verify(slot, piece.first_block, bytes, piece.offset + at);
    if (piece.wanted.empty()) continue;
    if (owner->raw(slot)) {
      const std::int64_t from = piece.wanted_offset - piece.first_block * geometry.block_bytes;
      std::memcpy(piece.wanted.data(), bytes.data() + from, piece.wanted.size());
      continue;
    }
    try {
      if (static_cast<std::int64_t>(piece.wanted.size()) == geometry.slot_bytes) {
        decode(geometry.codec, geometry.element_bytes, bytes, piece.wanted);
      } else {
        const device::Buffer whole(static_cast<std::size_t>(geometry.slot_bytes));
        decode(geometry.codec, geometry.element_bytes, bytes, whole.span());
        std::memcpy(piece.wanted.data(), whole.data() + piece.wanted_offset, piece.wanted.size());
      }
    } catch (const Error& error) {
      throw Error(error.errno_value(), {.attempted = "decompression",
                                        .path = owner->file.path(),
                                        .offset = piece.offset,
                                        .size_bytes = there,
                                        .detail = owner->named(slot) + ": " + error.context().detail});
    }
  }
}

// ---- requests

Component::Request::Request() noexcept = default;
Component::Request::Request(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Component::Request::~Request() = default;
Component::Request::Request(Request&&) noexcept = default;
Component::Request& Component::Request::operator=(Request&& other) noexcept = default;

/// Waits for a piece and does what is to be done with it.
void Component::Request::State::finish(Piece& piece) {
  std::int64_t moved = 0;
  try {
    moved = piece.request.wait();
  } catch (const Error& error) {
    ErrorContext context = error.context();
    const std::int64_t slot =
        piece.first_slot +
        std::clamp<std::int64_t>((context.offset - piece.offset) / owner->geometry().stride_bytes(), 0,
                                 piece.count - 1);
    context.detail += (context.detail.empty() ? "" : "; ") + owner->named(slot);
    throw Error(error.errno_value(), std::move(context));
  }
  write ? finish_write(piece) : finish_read(piece, moved);
}

void Component::Request::State::finish_all() {
  std::exception_ptr first;
  while (next_piece < pieces.size()) {
    Piece& piece = pieces[next_piece++];
    try {
      finish(piece);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

/// Nobody waits any more: the device must be done with the memory, and a failed write be told of by flush.
void Component::Request::State::settle() noexcept {
  try {
    if (write) return finish_all();
    for (; next_piece < pieces.size(); ++next_piece) {
      try {
        pieces[next_piece].request.wait();
      } catch (const Error&) {  // a read that nobody wants
      }
    }
  } catch (...) {
    std::lock_guard lock(owner->lost_mutex);
    if (!owner->lost) owner->lost = std::current_exception();
  }
}

void Component::Request::wait() {
  if (!state_) return;
  const auto state = std::move(state_);
  state->finish_all();
}

bool Component::Request::done() const noexcept {
  return !state_ || std::ranges::all_of(std::span(state_->pieces).subspan(state_->next_piece),
                                        [](const Piece& piece) { return piece.request.done(); });
}

// ---- the component as a whole

void Component::flush() {
  state_->deliver_lost();
  state_->file.flush();
}

std::vector<std::byte> Component::encode_table() const {
  return state_->table.encode();
}

void Component::committed() {
  // First all of the table, then the disk, whose failure must not leave half of it. Neighbours together: a
  // system call for each would take longer than writing them did.
  std::array<std::vector<std::pair<std::int64_t, std::int64_t>>, 2> stale;
  const Geometry& geometry = state_->geometry();
  state_->table.commit([&](std::int64_t slot, int side) {
    auto& ranges = stale[static_cast<std::size_t>(side)];
    const std::int64_t begin = geometry.offset_of(slot, side), end = begin + geometry.stride_bytes();
    if (!ranges.empty() && ranges.back().second == begin)
      ranges.back().second = end;
    else
      ranges.emplace_back(begin, end);
  });
  for (const auto& ranges : stale)
    for (const auto& [begin, end] : ranges) state_->file.punch(begin, end - begin);
}

void Component::release_unused() {
  const Geometry& geometry = state_->geometry();
  // What lies between the pieces in use, in the order of the file.
  std::int64_t unused = 0;
  for (int side = 0; side < geometry.sides(); ++side) {
    for (std::int64_t slot = 0; slot < geometry.slots; ++slot) {
      if (!state_->table.written(slot) || state_->table.side(slot) != side) continue;
      const std::int64_t begin = geometry.offset_of(slot, side);
      if (begin > unused) state_->file.punch(unused, begin - unused);
      unused = begin + round_up(state_->table.stored_bytes(slot), Geometry::page_bytes);
    }
  }
  if (unused < geometry.file_bytes()) state_->file.punch(unused, geometry.file_bytes() - unused);
}

void Component::close() {
  state_->file.close();
  state_->deliver_lost();
}

void Component::remove(const std::string& path) {
  device::remove_file(path);
}

}  // namespace outcore::store
