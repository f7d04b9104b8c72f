#include <cerrno>
#include <limits>
#include <random>

#include "chem/hf/record_index.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore::chem;

namespace {

constexpr std::size_t record_bytes = 1 << 16;

SlabRange range(std::uint32_t task, std::uint32_t first, std::uint32_t count) {
  return {.task = task, .small = false, .whole = false, .first = first, .count = count};
}

RecordIndex two_records() {
  RecordIndex index;
  for (const int n : {0, 1}) {
    IndexedRecord record;
    record.number = n, record.slabs = 3, record.integrals = 70, record.used = 5000, record.checksum = 17;
    record.bound = 0.5;
    record.ranges = {range(7, n == 0 ? 0 : 2, 2), range(std::uint32_t(8 + n), 0, 1)};
    index.records.push_back(record);
  }
  index.lost = {{.task = 3, .small = false, .whole = true}, {.task = 3, .small = true, .whole = true}};
  return index;
}

/// The error that reading a changed index gives.
template <class Change>
std::string refused(Change change) {
  RecordIndex index = two_records();
  change(index);
  const auto bytes = index.bytes();
  const auto error = check::throws<outcore::Error>([&] {
    const RecordIndex found = RecordIndex::parse(bytes, record_bytes, "integrals-1.0");
    check_ranges(std::span(&found, 1), 10);
  });
  check::equal(error.errno_value(), EIO);
  return error.what();
}

}  // namespace

TEST("an index comes back as it was written") {
  const auto bytes = two_records().bytes();
  const RecordIndex found = RecordIndex::parse(bytes, record_bytes, "");
  check::is_true(found.bytes() == bytes);
  check_ranges(std::span(&found, 1), 10);
}

TEST("records lie within a file, each in a place of its own, and are no longer than a record") {
  check::contains(refused([](auto& index) { index.records[0].number = -1; }), "in place -1");
  check::contains(
      refused([](auto& index) { index.records[0].number = std::numeric_limits<std::int64_t>::max(); }),
      "in place 9223372036854775807");
  check::contains(refused([](auto& index) { index.records[0].number = 1; }), "two records in place 1");
  check::contains(refused([](auto& index) { index.records[0].used = record_bytes + 1; }),
                  "a record of 65537 bytes");
  check::contains(refused([](auto& index) { index.records[0].used = 0xffffffff; }), "4294967295 bytes");
  check::contains(refused([](auto& index) { index.records[0].slabs = 5000; }), "5000 slabs");
  check::contains(refused([](auto& index) { index.records[0].integrals = 1ull << 63; }), "integrals in 5000");
}

TEST("a bound that would leave out a record unseen is refused") {
  for (const double bound : {-1.0, std::numeric_limits<double>::quiet_NaN(), HUGE_VAL})
    check::contains(refused([&](auto& index) { index.records[1].bound = bound; }), "bound");
}

TEST("no slab is there twice, none is left out, and all are of tasks that there are") {
  check::contains(refused([](auto& index) { index.lost[0].task = 10; }), "task 10 of 10");
  check::contains(refused([](auto& index) { index.records[1].ranges[1].task = 10; }), "task 10 of 10");
  check::contains(refused([](auto& index) { index.records[1].ranges[0].first = 1; }),
                  "large slabs of task 7");
  check::contains(refused([](auto& index) { index.records[1].ranges[0].first = 3; }),
                  "large slabs of task 7");
  check::contains(refused([](auto& index) { index.lost[0].task = 8; }), "large slabs of task 8");
  check::contains(refused([](auto& index) { index.lost[1].small = false; }), "large slabs of task 3");
  check::contains(refused([](auto& index) { index.records[1].ranges[0].count = 0xffffffff; }),
                  "4294967295 slabs");
}

TEST("an index of another length, or a flag that is none, is refused") {
  const auto good = two_records().bytes();
  for (std::size_t size = 0; size < good.size(); ++size)
    check::throws<outcore::Error>(
        [&] { std::ignore = RecordIndex::parse(std::span(good).first(size), record_bytes, ""); });
  auto longer = good;
  longer.push_back(std::byte{0});
  check::throws<outcore::Error>([&] { std::ignore = RecordIndex::parse(longer, record_bytes, ""); });
  auto flag = good;
  flag[flag.size() - 9] = std::byte{2};  // the last `whole`, before two numbers of 4 bytes
  check::throws<outcore::Error>([&] { std::ignore = RecordIndex::parse(flag, record_bytes, ""); });
}

TEST("numbers of entries that are not there take no memory") {
  auto bytes = two_records().bytes();
  for (const std::size_t at : {std::size_t{0}, bytes.size() - 36})  // number of records; number of losses
    for (std::size_t byte = 0; byte < 8; ++byte) bytes[at + byte] = std::byte{0xff};
  check::throws<outcore::Error>([&] { std::ignore = RecordIndex::parse(bytes, record_bytes, ""); });
}

TEST_MAIN
