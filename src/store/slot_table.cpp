#include "outcore/store/slot_table.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <new>
#include <stdexcept>

#include "outcore/error.hpp"
#include "store/envelope.hpp"

namespace outcore::store {
namespace {

constexpr EnvelopeKind kind{{'O', 'U', 'T', 'C', 'T', 'A', 'B', 'L'}, 1, "a table of an Outcore array"};

/// In files the size of what a slot stores has the side in its highest bit.
constexpr std::uint32_t side_flag = 0x80000000;

[[noreturn]] void refuse(const std::string& detail) {
  throw Error(EINVAL, {.attempted = "component of an array", .detail = detail});
}

void write_geometry(BodyWriter& writer, const Geometry& geometry) {
  writer.number(geometry.slot_bytes);
  writer.number(geometry.slots);
  writer.number(geometry.block_bytes);
  writer.number(geometry.element_bytes);
  writer.number(static_cast<std::uint8_t>(geometry.shadow));
  writer.number(static_cast<std::uint8_t>(geometry.codec.codec));
  writer.number(static_cast<std::uint8_t>(geometry.codec.compressor));
  writer.number(static_cast<std::uint8_t>(geometry.codec.filter));
  writer.number(geometry.codec.level);
}

Geometry read_geometry(BodyReader& reader) {
  Geometry geometry;
  geometry.slot_bytes = reader.number<std::int64_t>();
  geometry.slots = reader.number<std::int64_t>();
  geometry.block_bytes = reader.number<std::int64_t>();
  geometry.element_bytes = reader.number<std::uint32_t>();
  geometry.shadow = reader.number<std::uint8_t>("the number of sides", 0, 1) != 0;
  geometry.codec.codec = static_cast<Codec>(reader.number<std::uint8_t>());
  geometry.codec.compressor = static_cast<Compressor>(reader.number<std::uint8_t>());
  geometry.codec.filter = static_cast<Filter>(reader.number<std::uint8_t>());
  geometry.codec.level = reader.number<std::uint8_t>();
  try {
    check(geometry);
  } catch (const Error& error) {
    reader.fail(error.context().detail);
  }
  return geometry;
}

}  // namespace

std::int64_t suitable_block_bytes(std::int64_t slot_bytes) noexcept {
  constexpr std::int64_t least = 8 << 10, most = 128 << 10;
  return std::clamp(slot_bytes / 8 / Geometry::page_bytes * Geometry::page_bytes, least, most);
}

void check(const Geometry& geometry) {
  check(geometry.codec);
  if (geometry.slot_bytes < 1 || geometry.slot_bytes > Geometry::most_slot_bytes)
    refuse("slots of " + std::to_string(geometry.slot_bytes) + " bytes; 1 to " +
           std::to_string(Geometry::most_slot_bytes) + " are possible");
  if (geometry.block_bytes < 1 || geometry.block_bytes > Geometry::most_slot_bytes ||
      geometry.block_bytes % Geometry::page_bytes != 0 || geometry.blocks() > Geometry::most_blocks)
    refuse("blocks of " + std::to_string(geometry.block_bytes) + " bytes in slots of " +
           std::to_string(geometry.slot_bytes) + "; they must be multiples of " +
           std::to_string(Geometry::page_bytes) + ", and at most " + std::to_string(Geometry::most_blocks));
  if (geometry.element_bytes < 1) refuse("elements of 0 bytes");
  std::int64_t bytes = 0;
  if (geometry.slots < 0 ||
      __builtin_mul_overflow(geometry.stride_bytes() * geometry.sides(), geometry.slots, &bytes) ||
      bytes > std::int64_t{1} << 62)
    refuse(std::to_string(geometry.slots) + " slots of " + std::to_string(geometry.slot_bytes) + " bytes");
}

SlotTable::SlotTable(const Geometry& geometry) : geometry_(geometry) {
  check(geometry);
  try {
    stored_.resize(static_cast<std::size_t>(geometry.slots));
    state_.resize(static_cast<std::size_t>(geometry.slots));
    checksums_.resize(static_cast<std::size_t>(geometry.slots * geometry.blocks()));
  } catch (const std::bad_alloc&) {
    throw Error(ENOMEM, {.attempted = "table of a component", .size_bytes = geometry.table_bytes()});
  } catch (const std::length_error&) {
    throw Error(ENOMEM, {.attempted = "table of a component", .size_bytes = geometry.table_bytes()});
  }
}

std::size_t SlotTable::index(std::int64_t slot) const noexcept {
  assert(slot >= 0 && slot < geometry_.slots);
  return static_cast<std::size_t>(slot);
}

std::span<const std::uint32_t> SlotTable::checksums(std::int64_t slot) const noexcept {
  return std::span(checksums_)
      .subspan(index(slot) * static_cast<std::size_t>(geometry_.blocks()),
               static_cast<std::size_t>(geometry_.blocks_in(stored_bytes(slot))));
}

int SlotTable::next_side(std::int64_t slot) const noexcept {
  const std::uint8_t state = state_[index(slot)];
  if (geometry_.shadow && state & committed_bit) return state & committed_side_bit ? 0 : 1;
  return side(slot);
}

void SlotTable::set(std::int64_t slot, int side, std::int64_t stored_bytes,
                    std::span<const std::uint32_t> checksums) {
  const std::size_t i = index(slot);
  assert(stored_bytes > 0 && stored_bytes <= geometry_.slot_bytes && side < geometry_.sides());
  assert(static_cast<std::int64_t>(checksums.size()) == geometry_.blocks_in(stored_bytes));
  std::ranges::copy(checksums, checksums_.begin() + slot * geometry_.blocks());
  stored_[i] = static_cast<std::uint32_t>(stored_bytes);
  state_[i] = static_cast<std::uint8_t>((state_[i] & ~side_bit) | (side ? side_bit : 0));
}

void SlotTable::commit(const std::function<void(std::int64_t slot, int side)>& stale) {
  for (std::int64_t slot = 0; slot < geometry_.slots; ++slot) {
    if (!written(slot)) continue;
    std::uint8_t& state = state_[index(slot)];
    const int now = side(slot), before = state & committed_side_bit ? 1 : 0;
    const bool moved = state & committed_bit && now != before;
    state = static_cast<std::uint8_t>((now ? side_bit | committed_side_bit : 0) | committed_bit);
    if (moved) stale(slot, before);
  }
}

std::int64_t SlotTable::total_stored_bytes() const noexcept {
  std::int64_t total = 0;
  for (const std::uint32_t stored : stored_) total += stored;
  return total;
}

std::int64_t SlotTable::most_bytes(const Geometry& geometry) noexcept {
  constexpr std::int64_t head_bytes = 256;  // of the envelope and the geometry
  return head_bytes +
         geometry.slots * static_cast<std::int64_t>(sizeof(std::uint32_t)) * (1 + geometry.blocks());
}

std::vector<std::byte> SlotTable::encode() const {
  BodyWriter writer;
  write_geometry(writer, geometry_);
  for (std::int64_t slot = 0; slot < geometry_.slots; ++slot)
    writer.number(stored_[index(slot)] | (side(slot) ? side_flag : 0));
  for (std::int64_t slot = 0; slot < geometry_.slots; ++slot) writer.raw(std::as_bytes(checksums(slot)));
  return seal(kind, writer.body());
}

SlotTable SlotTable::decode(std::span<const std::byte> bytes, const std::string& path) {
  BodyReader reader(unseal(kind, bytes, path), kind, path);
  const Geometry geometry = read_geometry(reader);
  if (geometry.slots > static_cast<std::int64_t>(reader.left() / sizeof(std::uint32_t)))
    reader.fail(std::to_string(geometry.slots) + " slots do not fit into " + std::to_string(reader.left()) +
                " bytes");
  SlotTable table(geometry);
  for (std::int64_t slot = 0; slot < geometry.slots; ++slot) {
    const auto entry = reader.number<std::uint32_t>();
    const std::uint32_t stored = entry & ~side_flag;
    if (stored > static_cast<std::uint32_t>(geometry.slot_bytes) ||
        (entry & side_flag && (stored == 0 || !geometry.shadow)) ||
        (geometry.codec.codec == Codec::none && stored != 0 &&
         stored != static_cast<std::uint32_t>(geometry.slot_bytes)))
      reader.fail("slot " + std::to_string(slot) + " stores " + std::to_string(entry));
    table.stored_[table.index(slot)] = stored;
    if (entry & side_flag) table.state_[table.index(slot)] = side_bit;
  }
  for (std::int64_t slot = 0; slot < geometry.slots; ++slot) {
    const auto part = reader.raw(table.checksums(slot).size_bytes());
    if (!part.empty())
      std::memcpy(&table.checksums_[static_cast<std::size_t>(slot * geometry.blocks())], part.data(),
                  part.size());
  }
  reader.finish();
  table.commit([](std::int64_t, int) {});
  return table;
}

}  // namespace outcore::store
