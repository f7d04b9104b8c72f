// Writing and reading the slots of a component.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "outcore/error.hpp"
#include "store/checksum.hpp"
#include "store/component_state.hpp"

namespace outcore::store {
namespace {

/// Consecutive slots are moved in requests of up to this size: large enough to cost little, small enough to
/// be verified while the next one is under way.
constexpr std::int64_t max_request_bytes = 4 << 20;

/// Smaller pieces are not worth a call.
/// Measured: [M19].
constexpr std::int64_t min_reserved_bytes = 1 << 20;

}  // namespace

// ---- writing

void Component::reserve(std::int64_t first_slot, std::int64_t count) {
  const Geometry& geometry = state_->geometry();
  state_->check_slots("reserve", first_slot, count,
                      static_cast<std::size_t>(count * geometry.stride_bytes()));
  if (state_->encodes()) return;
  for (std::int64_t slot = first_slot, end = first_slot + count; slot < end;) {
    const int side = state_->next_side(slot);
    std::int64_t next = slot + 1;
    while (next < end && state_->next_side(next) == side) ++next;
    const std::int64_t bytes = (next - slot) * geometry.stride_bytes();
    if (bytes >= min_reserved_bytes && !state_->file.reserve(geometry.offset_of(slot, side), bytes)) return;
    slot = next;
  }
}

std::vector<Component::Former> Component::former(std::int64_t first_slot, std::int64_t count) const {
  const SlotTable& table = state_->table;
  std::vector<Former> all;
  for (std::int64_t slot = first_slot; slot < first_slot + count; ++slot) {
    const bool written = table.written(slot);
    if (!state_->moves(slot)) continue;
    if (all.empty() || all.back().entries.empty() == written ||
        all.back().first_slot + all.back().count != slot)
      all.push_back({.first_slot = slot, .count = 0, .entries = {}});
    ++all.back().count;
    if (written) all.back().entries.push_back(table.entry(slot));
  }
  return all;
}

void Component::restore(std::span<const Former> former) noexcept {
  const SlotTable::Entry nothing;
  for (auto each = former.rbegin(); each != former.rend(); ++each)
    for (std::int64_t i = 0; i < each->count; ++i)
      state_->table.restore(each->first_slot + i,
                            each->entries.empty() ? nothing : each->entries[static_cast<std::size_t>(i)]);
}

void Component::give_back(std::int64_t first_slot, std::int64_t count) noexcept {
  state_->give_back(first_slot, count);
}

void Component::State::give_back(std::int64_t first_slot, std::int64_t count) noexcept {
  const std::int64_t stride = geometry().stride_bytes(), end = first_slot + count;
  const auto unused_side = [&](std::int64_t slot) {
    return moves(slot) ? table.next_side(slot, taken(slot)) : -1;
  };
  for (std::int64_t slot = first_slot; slot < end; ++slot) {
    const std::int64_t first = slot;
    const int side = unused_side(slot);
    if (side < 0) continue;
    while (slot + 1 < end && unused_side(slot + 1) == side) ++slot;
    try {
      file.punch(geometry().offset_of(first, side), (slot + 1 - first) * stride);
    } catch (const std::exception&) {  // the earlier failure counts
    }
  }
}

Request Component::write_async(std::int64_t first_slot, std::int64_t count, std::span<std::byte> memory) {
  state_->check_slots("write", first_slot, count, memory.size());
  const Geometry& geometry = state_->geometry();
  const std::int64_t stride = geometry.stride_bytes();
  for (std::int64_t slot = first_slot; slot < first_slot + count; ++slot) state_->table.prepare(slot);
  const auto made = std::make_shared<Transfer>(state_, true);
  Transfer& request = *made;
  request.first_slot = first_slot;
  request.checksums.resize(static_cast<std::size_t>(count * geometry.blocks()));
  request.stored.resize(static_cast<std::size_t>(count));
  if (state_->encodes()) request.staging = device::Buffer(memory.size());

  SlotRequest raw{.count = 0};  // contiguous slots that are written without a codec
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
    const int side = state_->next_side(slot);
    state_->grow(side);
    const auto content = part_of(memory, (slot - first_slot) * stride, stride);
    if (state_->encodes()) {
      // If compression saves no page, the chunk is stored as it is.
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
                          (raw.count + 1) * stride > max_request_bytes))
      write_raw();
    if (raw.count == 0) raw = {.first_slot = slot, .count = 0, .side = side};
    ++raw.count;
  }
  write_raw();
  return Request(made);
}

void Component::Transfer::begin(const SlotRequest& part) {
  asked.push_back(part);  // first, so that the request under way is known
  try {
    asked.back().request = write ? owner->file.write_async(part.disk, part.offset)
                                 : owner->file.read_async(part.disk, part.offset);
  } catch (...) {
    asked.pop_back();
    throw;
  }
}

void Component::Transfer::note_written(std::int64_t slot, std::span<const std::byte> bytes) {
  const Geometry& geometry = owner->geometry();
  const auto block_bytes = static_cast<std::size_t>(geometry.block_bytes);
  const std::int64_t i = slot - first_slot;
  stored[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(bytes.size());
  std::uint32_t* next = &checksums[static_cast<std::size_t>(i * geometry.blocks())];
  for (std::size_t at = 0; at < bytes.size(); at += block_bytes)
    *next++ = crc32c(bytes.subspan(at, std::min(block_bytes, bytes.size() - at)));
}

void Component::Transfer::finish_write(const SlotRequest& part) {
  const Geometry& geometry = owner->geometry();
  for (std::int64_t slot = part.first_slot; slot < part.first_slot + part.count; ++slot) {
    const std::int64_t i = slot - first_slot, size = stored[static_cast<std::size_t>(i)];
    owner->publish(slot, part.side, size,
                   std::span(checksums).subspan(static_cast<std::size_t>(i * geometry.blocks()),
                                                static_cast<std::size_t>(geometry.blocks_in(size))));
  }
}

// ---- reading

Request Component::read_async(std::int64_t first_slot, std::int64_t count,
                              std::span<std::byte> memory) const {
  state_->check_slots("read", first_slot, count, memory.size());
  const Geometry& geometry = state_->geometry();
  const SlotTable& table = state_->table;
  const std::int64_t stride = geometry.stride_bytes();
  const auto made = std::make_shared<Transfer>(state_, false);
  Transfer& request = *made;
  const std::int64_t end = first_slot + count;
  for (std::int64_t slot = first_slot; slot < end;) {
    const auto content = part_of(memory, (slot - first_slot) * stride, stride);
    if (!table.written(slot)) {
      std::ranges::fill(content, std::byte{0});
      ++slot;
      continue;
    }
    SlotRequest part{.first_slot = slot, .side = table.side(slot)};
    part.offset = geometry.offset_of(slot, part.side);
    if (state_->raw(slot)) {
      const auto joins = [&](std::int64_t next) {
        return next < end && state_->raw(next) && table.side(next) == part.side &&
               (next + 1 - slot) * stride <= max_request_bytes;
      };
      while (joins(slot + part.count)) ++part.count;
      part.disk = part_of(memory, (slot - first_slot) * stride, part.count * stride);
    } else {
      if (request.staging.size() == 0) request.staging = device::Buffer(memory.size());
      part.disk = part_of(request.staging.span(), (slot - first_slot) * stride,
                          round_up(table.stored_bytes(slot), Geometry::page_bytes));
      part.decoded = content.first(static_cast<std::size_t>(geometry.slot_bytes));
    }
    slot += part.count;
    request.begin(part);
  }
  return Request(made);
}

Request Component::read_blocks_async(std::int64_t slot, std::int64_t first, std::int64_t count,
                                     std::span<std::byte> memory) const {
  const Geometry& geometry = state_->geometry();
  state_->check_slots("read", slot, 1, memory.size());
  if (first < 0 || count < 1 || first >= geometry.blocks() || count > geometry.blocks() - first)
    throw Error(EINVAL, {.attempted = "read",
                         .path = path(),
                         .detail = std::to_string(count) + " blocks from " + std::to_string(first) +
                                   " on; a slot has " + std::to_string(geometry.blocks())});
  const std::int64_t begin = first * geometry.block_bytes;
  const std::int64_t end = std::min((first + count) * geometry.block_bytes, geometry.stride_bytes());
  if (!state_->table.written(slot)) {
    std::ranges::fill(part_of(memory, begin, end - begin), std::byte{0});
    return {};
  }
  if (!state_->raw(slot)) return read_async(slot, 1, memory);
  const auto made = std::make_shared<Transfer>(state_, false);
  const int side = state_->table.side(slot);
  made->begin({.first_slot = slot,
               .side = side,
               .first_block = first,
               .offset = geometry.offset_of(slot, side) + begin,
               .disk = part_of(memory, begin, end - begin)});
  return Request(made);
}

void Component::Transfer::finish_read(const SlotRequest& part, std::int64_t moved) {
  const Geometry& geometry = owner->geometry();
  if (moved != static_cast<std::int64_t>(part.disk.size()))
    throw Error(EIO, {.attempted = "read",
                      .path = owner->file.path(),
                      .offset = part.offset + moved,
                      .size_bytes = static_cast<std::int64_t>(part.disk.size()) - moved,
                      .detail = "truncated: the file ends here, in " +
                                owner->named(part.first_slot + moved / geometry.stride_bytes())});
  for (std::int64_t i = 0; i < part.count; ++i) {
    const std::int64_t slot = part.first_slot + i, at = i * geometry.stride_bytes();
    const std::int64_t there = owner->table.stored_bytes(slot) - part.first_block * geometry.block_bytes;
    const auto bytes =
        part_of(part.disk, at, std::min(there, static_cast<std::int64_t>(part.disk.size()) - at));
    owner->verify(slot, part.first_block, bytes, part.offset + at);
    if (part.decoded.empty()) continue;
    try {
      decode(geometry.codec, geometry.element_bytes, bytes, part.decoded);
    } catch (const Error& error) {
      throw Error(error.errno_value(), {.attempted = "decompression",
                                        .path = owner->file.path(),
                                        .offset = part.offset,
                                        .size_bytes = there,
                                        .detail = owner->named(slot) + ": " + error.context().detail});
    }
  }
}

// ---- requests

/// Waits for a part and ends it.
void Component::Transfer::finish_request(SlotRequest& part) {
  std::int64_t moved = 0;
  try {
    moved = part.request.wait();
  } catch (const Error& error) {
    ErrorContext context = error.context();
    const std::int64_t slot = part.first_slot + std::clamp<std::int64_t>((context.offset - part.offset) /
                                                                             owner->geometry().stride_bytes(),
                                                                         0, part.count - 1);
    context.detail += (context.detail.empty() ? "" : "; ") + owner->named(slot);
    if (write) owner->give_back(part.first_slot, part.count);
    throw Error(error.errno_value(), std::move(context));
  }
  if (!unwanted_) write ? finish_write(part) : finish_read(part, moved);
}

void Component::Transfer::end() {
  std::exception_ptr first;
  for (SlotRequest& part : asked) {
    try {
      finish_request(part);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  staging = {};
  if (first) std::rethrow_exception(first);
}

Component::Transfer::~Transfer() {
  unwanted_ = !write;
  finish_quietly();
  if (write)
    if (const std::exception_ptr failure = undelivered()) owner->undelivered.add(failure);
}

bool Component::Transfer::done() const noexcept {
  return finished() ||
         std::ranges::all_of(asked, [](const SlotRequest& part) { return part.request.done(); });
}

}  // namespace outcore::store
