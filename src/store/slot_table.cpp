#include "outcore/store/slot_table.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <new>
#include <stdexcept>

#include "outcore/error.hpp"
#include "store/envelope.hpp"

namespace outcore::store {
namespace {

constexpr EnvelopeKind kind{{'O', 'U', 'T', 'C', 'T', 'A', 'B', 'L'}, 1, "a table of an Outcore array"};
/// Of more than two sides, one byte for each slot behind the sizes.
constexpr EnvelopeKind kind_of_many_sides{kind.magic, 2, kind.what};

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

int SlotTable::next_side(std::int64_t slot, std::uint64_t taken) const noexcept {
  if (!geometry_.shadow) return side(slot);
  const int committed = committed_side(slot);
  if (committed >= 0) taken |= std::uint64_t{1} << committed;
  const int now = side(slot), free = std::countr_one(taken);
  if (!(taken >> now & 1)) return now;  // a version that nobody refers to yet
  return free < most_sides ? free : -1;
}

int SlotTable::sides() const noexcept {
  int most = static_cast<int>(geometry_.sides()) - 1;
  for (const std::uint16_t state : state_)
    most = std::max({most, state & side_bits, state >> committed_shift});
  return most + 1;
}

void SlotTable::set(std::int64_t slot, int side, std::int64_t stored_bytes,
                    std::span<const std::uint32_t> checksums) {
  const std::size_t i = index(slot);
  assert(stored_bytes > 0 && stored_bytes <= geometry_.slot_bytes);
  assert(side >= 0 && side < (geometry_.shadow ? most_sides : 1));
  assert(static_cast<std::int64_t>(checksums.size()) == geometry_.blocks_in(stored_bytes));
  std::ranges::copy(checksums, checksums_.begin() + slot * geometry_.blocks());
  stored_[i] = static_cast<std::uint32_t>(stored_bytes);
  state_[i] = static_cast<std::uint16_t>((state_[i] & ~side_bits) | side);
}

void SlotTable::commit(const std::function<void(std::int64_t slot, int side)>& stale) {
  for (std::int64_t slot = 0; slot < geometry_.slots; ++slot) {
    if (!written(slot)) continue;
    const int now = side(slot), before = committed_side(slot);
    state_[index(slot)] = static_cast<std::uint16_t>(now | committed_bit | now << committed_shift);
    if (before >= 0 && now != before) stale(slot, before);
  }
}

std::int64_t SlotTable::total_stored_bytes() const noexcept {
  std::int64_t total = 0;
  for (const std::uint32_t stored : stored_) total += stored;
  return total;
}

std::vector<std::byte> SlotTable::encode() const {
  const bool many_sides = sides() > 2;
  BodyWriter writer;
  write_geometry(writer, geometry_);
  for (std::int64_t slot = 0; slot < geometry_.slots; ++slot)
    writer.number(stored_[index(slot)] | (!many_sides && side(slot) ? side_flag : 0));
  if (many_sides)
    for (std::int64_t slot = 0; slot < geometry_.slots; ++slot)
      writer.number(static_cast<std::uint8_t>(side(slot)));
  for (std::int64_t slot = 0; slot < geometry_.slots; ++slot) writer.raw(std::as_bytes(checksums(slot)));
  return seal(many_sides ? kind_of_many_sides : kind, writer.body());
}

SlotTable SlotTable::decode(std::span<const std::byte> bytes, const std::string& path) {
  const bool many_sides = version_in(bytes) >= kind_of_many_sides.version;
  const EnvelopeKind& found = many_sides ? kind_of_many_sides : kind;
  BodyReader reader(unseal(found, bytes, path), found, path);
  const Geometry geometry = read_geometry(reader);
  if (geometry.slots > static_cast<std::int64_t>(reader.left() / sizeof(std::uint32_t)))
    reader.fail(std::to_string(geometry.slots) + " slots do not fit into " + std::to_string(reader.left()) +
                " bytes");
  SlotTable table(geometry);
  for (std::int64_t slot = 0; slot < geometry.slots; ++slot) {
    const auto entry = reader.number<std::uint32_t>();
    const std::uint32_t stored = entry & ~side_flag;
    if (stored > static_cast<std::uint32_t>(geometry.slot_bytes) ||
        (entry & side_flag && (stored == 0 || !geometry.shadow || many_sides)) ||
        (geometry.codec.codec == Codec::none && stored != 0 &&
         stored != static_cast<std::uint32_t>(geometry.slot_bytes)))
      reader.fail("slot " + std::to_string(slot) + " stores " + std::to_string(entry));
    table.stored_[table.index(slot)] = stored;
    if (entry & side_flag) table.state_[table.index(slot)] = 1;
  }
  for (std::int64_t slot = 0; many_sides && slot < geometry.slots; ++slot) {
    const auto side = reader.number<std::uint8_t>("the side of a slot", 0, most_sides - 1);
    if (side > 0 && (!geometry.shadow || !table.written(slot)))
      reader.fail("slot " + std::to_string(slot) + " is on side " + std::to_string(side));
    table.state_[table.index(slot)] = side;
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
