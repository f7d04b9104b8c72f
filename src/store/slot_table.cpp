#include "store/slot_table.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <limits>
#include <utility>

#include "outcore/error.hpp"
#include "store/file_header.hpp"
#include "store/slot_pages.hpp"

namespace outcore::store {
namespace {

constexpr FileKind kind{{'O', 'U', 'T', 'C', 'T', 'A', 'B', 'L'}, 2, "a table of an Outcore array"};

/// A file has only the written slots: first their ranges, then their sizes, their sides, and the checksums of
/// their blocks.
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
    if (error.errno_value() == ENOTSUP) throw;  // a codec that this program has not added is no damage
    reader.fail(error.context().detail);
  }
  return geometry;
}

/// Ranges rise, with unwritten slots between them.
std::vector<SlotRange> read_ranges(BodyReader& reader, const Geometry& geometry) {
  const auto most = static_cast<std::int64_t>(reader.left() / sizeof(SlotRange));
  std::vector<SlotRange> ranges(
      static_cast<std::size_t>(reader.number<std::int64_t>("the number of ranges of slots", 0, most)));
  std::int64_t least = 0, slots = 0;
  for (SlotRange& range : ranges) {
    range.first_slot = reader.number<std::int64_t>("the first slot of a range", least, geometry.slots);
    range.count = reader.number<std::int64_t>("the length of a range", 1, geometry.slots - range.first_slot);
    least = range.end() + 1;
    slots += range.count;
  }
  if (slots > static_cast<std::int64_t>(reader.left() / (sizeof(std::uint32_t) + sizeof(std::uint8_t))))
    reader.fail(std::to_string(slots) + " slots do not fit into " + std::to_string(reader.left()) + " bytes");
  return ranges;
}

}  // namespace

std::int64_t suitable_block_bytes(std::int64_t slot_bytes) noexcept {
  constexpr std::int64_t least = 8 << 10, most = 128 << 10;
  return std::clamp(slot_bytes / 8 / Geometry::page_bytes * Geometry::page_bytes, least, most);
}

void check(const Geometry& geometry) {
  check(geometry.codec);
  if (geometry.slot_bytes < 1 || geometry.slot_bytes > Geometry::max_slot_bytes)
    refuse("slots of " + std::to_string(geometry.slot_bytes) + " bytes; 1 to " +
           std::to_string(Geometry::max_slot_bytes) + " are possible");
  if (geometry.block_bytes < 1 || geometry.block_bytes > Geometry::max_slot_bytes ||
      geometry.block_bytes % Geometry::page_bytes != 0 || geometry.blocks() > Geometry::max_blocks)
    refuse("blocks of " + std::to_string(geometry.block_bytes) + " bytes in slots of " +
           std::to_string(geometry.slot_bytes) + "; they must be multiples of " +
           std::to_string(Geometry::page_bytes) + ", and at most " + std::to_string(Geometry::max_blocks));
  if (geometry.element_bytes < 1) refuse("elements of 0 bytes");
  std::int64_t bytes = 0;
  if (geometry.slots < 0 ||
      __builtin_mul_overflow(geometry.stride_bytes() * geometry.sides(), geometry.slots, &bytes) ||
      bytes > std::int64_t{1} << 62)
    refuse(std::to_string(geometry.slots) + " slots of " + std::to_string(geometry.slot_bytes) + " bytes");
}

SlotTable::SlotTable(const Geometry& geometry) : geometry_(geometry) {
  check(geometry);
  pages_ = std::make_unique<SlotPages>(geometry);
}
SlotTable::~SlotTable() = default;
SlotTable::SlotTable(SlotTable&&) noexcept = default;
SlotTable& SlotTable::operator=(SlotTable&&) noexcept = default;

void SlotTable::account_to(std::function<void(std::int64_t bytes)> account) {
  pages_->account_to(std::move(account));
}

std::int64_t SlotTable::stored_bytes(std::int64_t slot) const noexcept {
  const SlotPages::Page* page = pages_->find(slot);
  return page ? page->stored[pages_->index_in_page(slot)] : 0;
}

std::uint16_t SlotTable::state(std::int64_t slot) const noexcept {
  const SlotPages::Page* page = pages_->find(slot);
  return page ? page->state[pages_->index_in_page(slot)] : std::uint16_t{0};
}

int SlotTable::side(std::int64_t slot) const noexcept {
  return state(slot) & side_bits;
}

int SlotTable::committed_side(std::int64_t slot) const noexcept {
  const std::uint16_t found = state(slot);
  return found & committed_bit ? found >> committed_shift : -1;
}

int SlotTable::sides() const noexcept {
  int most = static_cast<int>(geometry_.sides()) - 1;
  pages_->for_each([&](std::int64_t, const SlotPages::Page& page) {
    for (const std::uint16_t found : page.state)
      most = std::max({most, found & side_bits, found >> committed_shift});
  });
  return most + 1;
}

std::span<const std::uint32_t> SlotTable::checksums(std::int64_t slot) const noexcept {
  const SlotPages::Page* page = pages_->find(slot);
  if (!page) return {};
  return std::span(page->checksums)
      .subspan(pages_->index_in_page(slot) * static_cast<std::size_t>(geometry_.blocks()),
               static_cast<std::size_t>(geometry_.blocks_in(stored_bytes(slot))));
}

std::int64_t SlotTable::room(std::int64_t slot) const noexcept {
  const SlotPages::Page* page = pages_->find(slot);
  return page ? page->room[pages_->index_in_page(slot)] : 0;
}

void SlotTable::set_room(std::int64_t slot, std::int64_t bytes) noexcept {
  assert(written(slot));
  pages_->find(slot)->room[pages_->index_in_page(slot)] = static_cast<std::uint32_t>(bytes);
}

int SlotTable::next_side(std::int64_t slot, std::uint64_t taken) const noexcept {
  const std::uint16_t found = state(slot);
  const int now = found & side_bits;
  if (!geometry_.shadow) return now;
  if (found & committed_bit) taken |= std::uint64_t{1} << (found >> committed_shift);
  if (!(taken >> now & 1)) return now;  // a version to which nothing refers yet
  const int free = std::countr_one(taken);
  return free < max_sides ? free : -1;
}

void SlotTable::prepare(std::int64_t slot) {
  static_cast<void>(pages_->make(slot));
}

void SlotTable::set(std::int64_t slot, int side, std::int64_t stored_bytes,
                    std::span<const std::uint32_t> checksums) {
  assert(stored_bytes > 0 && stored_bytes <= geometry_.slot_bytes);
  assert(side >= 0 && side < (geometry_.shadow ? max_sides : 1));
  assert(static_cast<std::int64_t>(checksums.size()) == geometry_.blocks_in(stored_bytes));
  SlotPages::Page& page = pages_->make(slot);
  const std::size_t i = pages_->index_in_page(slot);
  std::ranges::copy(checksums, page.checksums.begin() + static_cast<std::ptrdiff_t>(i) * geometry_.blocks());
  page.stored[i] = static_cast<std::uint32_t>(stored_bytes);
  page.state[i] = static_cast<std::uint16_t>((page.state[i] & ~side_bits) | side);
}

SlotTable::Entry SlotTable::entry(std::int64_t slot) const {
  const SlotPages::Page* page = pages_->find(slot);
  const std::size_t i = pages_->index_in_page(slot);
  if (!page || page->stored[i] == 0) return {};
  const auto sums = checksums(slot);
  return {.stored = page->stored[i],
          .room = page->room.empty() ? 0 : page->room[i],
          .state = page->state[i],
          .checksums = {sums.begin(), sums.end()}};
}

void SlotTable::restore(std::int64_t slot, const Entry& entry) noexcept {
  SlotPages::Page* page = pages_->find(slot);
  if (!page) return;  // it was not set
  const std::size_t i = pages_->index_in_page(slot);
  page->stored[i] = entry.stored;
  page->state[i] = entry.state;
  if (!page->room.empty()) page->room[i] = entry.room;
  std::ranges::copy(entry.checksums,
                    page->checksums.begin() + static_cast<std::ptrdiff_t>(i) * geometry_.blocks());
}

void SlotTable::commit(const std::function<void(std::int64_t slot, int side)>& stale) {
  pages_->for_each([&](std::int64_t first, SlotPages::Page& page) {
    for (std::size_t i = 0; i < page.stored.size(); ++i) {
      if (page.stored[i] == 0) continue;
      std::uint16_t& its = page.state[i];
      const int now = its & side_bits, before = its >> committed_shift;
      const bool moved = its & committed_bit && now != before;
      its = static_cast<std::uint16_t>(now | committed_bit | now << committed_shift);
      if (moved) stale(first + static_cast<std::int64_t>(i), before);
    }
  });
}

std::int64_t SlotTable::total_stored_bytes() const noexcept {
  std::int64_t total = 0;
  pages_->for_each([&](std::int64_t, const SlotPages::Page& page) {
    for (const std::uint32_t stored : page.stored) total += stored;
  });
  return total;
}

void SlotTable::for_each_written(const std::function<void(std::int64_t slot)>& visit) const {
  pages_->for_each([&](std::int64_t first, const SlotPages::Page& page) {
    for (std::size_t i = 0; i < page.stored.size(); ++i)
      if (page.stored[i] != 0) visit(first + static_cast<std::int64_t>(i));
  });
}

std::int64_t SlotTable::next_written(std::int64_t slot) const {
  std::int64_t found = -1;
  if (slot < geometry_.slots)
    pages_->for_each_from(slot, [&](std::int64_t first, const SlotPages::Page& page) {
      const auto begin = page.stored.begin() + std::max<std::int64_t>(slot - first, 0);
      const auto next =
          std::find_if(begin, page.stored.end(), [](std::uint32_t stored) { return stored != 0; });
      if (next != page.stored.end()) found = first + (next - page.stored.begin());
      return found < 0;
    });
  return found;
}

std::int64_t SlotTable::max_bytes(const Geometry& geometry) noexcept {
  constexpr std::int64_t head_bytes = 256;  // of the file header and the geometry
  const std::int64_t slot_bytes = static_cast<std::int64_t>(sizeof(SlotRange) + sizeof(std::uint32_t)) + 1 +
                                  static_cast<std::int64_t>(sizeof(std::uint32_t)) * geometry.blocks();
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(geometry.slots, slot_bytes, &bytes) ||
      __builtin_add_overflow(bytes, head_bytes, &bytes))
    return std::numeric_limits<std::int64_t>::max();
  return bytes;
}

std::vector<std::byte> SlotTable::encode() const {
  std::vector<SlotRange> ranges;
  for_each_written([&](std::int64_t slot) {
    if (ranges.empty() || ranges.back().end() != slot) ranges.push_back({slot, 0});
    ++ranges.back().count;
  });
  BodyWriter writer;
  write_geometry(writer, geometry_);
  writer.number(static_cast<std::int64_t>(ranges.size()));
  for (const SlotRange& range : ranges) {
    writer.number(range.first_slot);
    writer.number(range.count);
  }
  for_each_written([&](std::int64_t slot) { writer.number(static_cast<std::uint32_t>(stored_bytes(slot))); });
  for_each_written([&](std::int64_t slot) { writer.number(static_cast<std::uint8_t>(side(slot))); });
  for_each_written([&](std::int64_t slot) { writer.raw(std::as_bytes(checksums(slot))); });
  return with_file_header(kind, writer.body());
}

SlotTable SlotTable::decode(std::span<const std::byte> bytes, const std::string& path) {
  BodyReader reader(checked_body(kind, bytes, path), kind, path);
  const Geometry geometry = read_geometry(reader);
  const std::vector<SlotRange> ranges = read_ranges(reader, geometry);
  SlotTable table(geometry);
  const auto for_each_slot = [&](auto visit) {
    for (const SlotRange& range : ranges)
      for (std::int64_t slot = range.first_slot; slot < range.end(); ++slot)
        visit(slot, table.pages_->index_in_page(slot));
  };
  for_each_slot([&](std::int64_t slot, std::size_t i) {
    const auto stored = reader.number<std::uint32_t>();
    if (stored == 0 || stored > static_cast<std::uint32_t>(geometry.slot_bytes) ||
        (geometry.codec.codec == Codec::none && stored != static_cast<std::uint32_t>(geometry.slot_bytes)))
      reader.fail("slot " + std::to_string(slot) + " stores " + std::to_string(stored));
    table.pages_->make(slot).stored[i] = stored;
  });
  const int most = geometry.shadow ? max_sides - 1 : 0;
  for_each_slot([&](std::int64_t slot, std::size_t i) {
    table.pages_->find(slot)->state[i] =
        reader.number<std::uint8_t>("the side of a slot", 0, static_cast<std::uint8_t>(most));
  });
  for_each_slot([&](std::int64_t slot, std::size_t i) {
    const auto part = reader.raw(table.checksums(slot).size_bytes());
    std::memcpy(&table.pages_->find(slot)->checksums[i * static_cast<std::size_t>(geometry.blocks())],
                part.data(), part.size());
  });
  reader.finish();
  table.commit([](std::int64_t, int) {});
  return table;
}

}  // namespace outcore::store
