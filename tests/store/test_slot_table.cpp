// The table of a component: sides, commits, and its file.
#include <algorithm>
#include <cerrno>
#include <set>

#include "outcore/error.hpp"
#include "store/samples.hpp"
#include "support/check.hpp"

using namespace outcore;
using namespace outcore::store;

namespace {

Geometry small(bool shadow) {
  return {.slot_bytes = 4096, .slots = 3, .block_bytes = 4096, .shadow = shadow};
}

void set(SlotTable& table, std::int64_t slot) {
  const std::uint32_t checksum = 7;
  table.set(slot, table.next_side(slot), table.geometry().slot_bytes, {&checksum, 1});
}

/// The places that a commit frees.
std::set<std::pair<std::int64_t, int>> commit(SlotTable& table) {
  std::set<std::pair<std::int64_t, int>> stale;
  table.commit([&](std::int64_t slot, int side) { stale.emplace(slot, side); });
  return stale;
}

bool same(const SlotTable& a, const SlotTable& b) {
  if (!(a.geometry() == b.geometry())) return false;
  for (std::int64_t slot = 0; slot < a.geometry().slots; ++slot)
    if (a.stored_bytes(slot) != b.stored_bytes(slot) || a.side(slot) != b.side(slot) ||
        !std::ranges::equal(a.checksums(slot), b.checksums(slot)))
      return false;
  return true;
}

void refused(Geometry geometry, const std::string& text,
             std::source_location at = std::source_location::current()) {
  const Error error = check::throws<Error>([&] { SlotTable{geometry}; }, at);
  check::equal(error.errno_value(), EINVAL, at);
  check::contains(error.what(), text, at);
}

}  // namespace

TEST("a committed slot goes to its other side once, until the next commit") {
  SlotTable table(small(true));
  set(table, 1);
  check::equal(table.side(1), 0);
  set(table, 1);
  check::equal(table.side(1), 0);
  check::is_true(commit(table).empty(), "nothing is given up by the first commit");
  set(table, 1);
  check::equal(table.side(1), 1);
  set(table, 1);
  check::equal(table.side(1), 1);
  check::is_true(commit(table) == std::set<std::pair<std::int64_t, int>>{{1, 0}});
  set(table, 1);
  check::equal(table.side(1), 0);
}

TEST("without shadow there is one side") {
  SlotTable table(small(false));
  set(table, 1);
  commit(table);
  check::equal(table.next_side(1), 0);
  set(table, 1);
  check::is_true(commit(table).empty());
}

TEST("what is encoded is decoded, and counts as committed") {
  for (const bool encoded : {false, true}) {
    for (const bool shadow : {false, true}) {
      const SlotTable table = samples::table(samples::geometry(encoded, shadow));
      const SlotTable back = SlotTable::decode(table.encode(), "name");
      check::is_true(same(table, back));
      for (std::int64_t slot = 0; slot < table.geometry().slots; ++slot)
        check::equal(back.next_side(slot), shadow && back.written(slot) ? 1 - back.side(slot) : 0);
    }
  }
}

TEST("a component without slots has a table, too") {
  Geometry geometry = small(true);
  geometry.slots = 0;
  check::is_true(same(SlotTable(geometry), SlotTable::decode(SlotTable(geometry).encode(), "name")));
}

TEST("a manifest is no table") {
  const Error error = check::throws<Error>(
      [] { static_cast<void>(SlotTable::decode(samples::manifest().encode(), "/some/table")); });
  check::equal(error.errno_value(), EINVAL);
  check::contains(error.what(), "/some/table");
  check::contains(error.what(), "not a table of an Outcore array");
}

TEST("a truncated table says so") {
  auto bytes = samples::table(samples::geometry()).encode();
  bytes.resize(bytes.size() / 2);
  const Error error =
      check::throws<Error>([&] { static_cast<void>(SlotTable::decode(bytes, "/some/table")); });
  check::equal(error.errno_value(), EIO);
  check::contains(error.what(), "truncated: have " + std::to_string(bytes.size()) + " bytes, need ");
}

TEST("sizes that cannot be are refused") {
  const Geometry good = samples::geometry();
  const auto with = [&](auto change) {
    Geometry geometry = good;
    change(geometry);
    return geometry;
  };
  refused(with([](Geometry& g) { g.slot_bytes = 0; }), "slots of 0 bytes");
  refused(with([](Geometry& g) { g.slot_bytes = Geometry::max_slot_bytes + 1; }), "slots of");
  refused(with([](Geometry& g) { g.slots = -1; }), "-1 slots");
  refused(with([](Geometry& g) { g.slots = std::int64_t{1} << 60; }), "slots of 50000");
  refused(with([](Geometry& g) { g.block_bytes = 0; }), "blocks of 0");
  refused(with([](Geometry& g) { g.block_bytes = 5000; }), "blocks of 5000");
  refused(with([](Geometry& g) {
            g.slot_bytes = std::int64_t{1} << 30;
            g.block_bytes = 4096;
          }),
          "at most 1024");
  refused(with([](Geometry& g) { g.element_bytes = 0; }), "elements of 0");
  refused(with([](Geometry& g) { g.codec.filter = Filter{9}; }), "filter 9");
}

TEST_MAIN
