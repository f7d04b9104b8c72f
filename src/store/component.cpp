// The file of a component, its table, and the space it takes. Requests are in component_requests.cpp.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "outcore/error.hpp"
#include "outcore/store/checksum.hpp"
#include "store/component_state.hpp"

namespace outcore::store {
namespace {

constexpr std::int64_t free_part = 8;  // space is kept up to one part in so many of what is free

std::string hex(std::uint32_t value) {
  char text[11];
  std::snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

}  // namespace

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
                  .unlink_after_open = chosen.unlink_after_open,
                  .directory = chosen.directory}),
      room(static_cast<std::size_t>(encodes() ? geometry().slots : 0)) {
  for (std::size_t i = 0; i < room.size(); ++i)
    room[i] = static_cast<std::uint32_t>(
        round_up(table.stored_bytes(static_cast<std::int64_t>(i)), Geometry::page_bytes));
}

bool Component::State::keeps(std::int64_t unused_bytes) const {
  if (!options.keep_space || encodes()) return false;
  std::error_code unknown;
  const auto space = std::filesystem::space(file.path(), unknown);
  return !unknown && static_cast<std::int64_t>(space.available) / free_part >= unused_bytes;
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
  std::int64_t stale_bytes = 0;
  state_->table.commit([&](std::int64_t slot, int side) {
    stale_bytes += geometry.stride_bytes();
    auto& ranges = stale[static_cast<std::size_t>(side)];
    const std::int64_t begin = geometry.offset_of(slot, side), end = begin + geometry.stride_bytes();
    if (!ranges.empty() && ranges.back().second == begin)
      ranges.back().second = end;
    else
      ranges.emplace_back(begin, end);
  });
  if (stale_bytes == 0 || state_->keeps(stale_bytes)) return;
  for (const auto& ranges : stale)
    for (const auto& [begin, end] : ranges) state_->file.punch(begin, end - begin);
}

void Component::release_unused() {
  const Geometry& geometry = state_->geometry();
  if (state_->keeps(state_->file.space_bytes() - state_->table.total_stored_bytes())) return;
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
