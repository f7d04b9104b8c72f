// How pieces of a file are joined into requests.
#include <vector>

#include "dio/stripes/extents.hpp"
#include "support/check.hpp"

using outcore::store::Extent;
using outcore::store::Runs;

namespace {

struct Memory {
  std::vector<std::byte> bytes = std::vector<std::byte>(1 << 20, std::byte{1});
  Extent at(std::int64_t offset, std::int64_t size) { return {offset, bytes.data() + offset, size}; }
};

}  // namespace

TEST("neighbours become one request, in the order of the file") {
  Memory memory;
  std::vector<Extent> extents{memory.at(200, 100), memory.at(0, 100), memory.at(100, 100)};
  const Runs runs(extents, true);
  check::equal(runs.runs().size(), 1U);
  check::equal(runs.runs()[0].offset, 0);
  check::equal(runs.runs()[0].size_bytes, 300);
  check::equal(runs.list(runs.runs()[0]).size(), 3U);
  check::is_true(!runs.sieves());
}

TEST("a read passes over gaps that are cheap, a write over none") {
  Memory memory;
  std::vector<Extent> extents{memory.at(0, 100), memory.at(1000, 100)};
  const Runs read(extents, false), write(extents, true);
  check::equal(read.runs().size(), 1U);
  check::equal(read.runs()[0].size_bytes, 1100);
  check::is_true(read.sieves());
  check::equal(write.runs().size(), 2U);
}

TEST("gaps that cost more than a request are not read") {
  Memory memory;
  std::vector<Extent> extents{memory.at(0, 100), memory.at(100 + Runs::max_gap_bytes + 1, 100)};
  check::equal(Runs(extents, false).runs().size(), 2U);
}

TEST("the same bytes may be read twice") {
  Memory memory;
  std::vector<Extent> extents{memory.at(0, 100), memory.at(50, 100)};
  check::equal(Runs(extents, false).runs().size(), 2U);
}

TEST("what lies beyond the end of the file reads as zeros") {
  Memory memory;
  std::vector<Extent> extents{memory.at(0, 100), memory.at(200, 100)};
  const Runs runs(extents, false);
  runs.zero_beyond(runs.runs()[0], 250);
  check::is_true(memory.bytes[99] == std::byte{1} && memory.bytes[249] == std::byte{1});
  check::is_true(memory.bytes[250] == std::byte{0} && memory.bytes[299] == std::byte{0});
  check::is_true(memory.bytes[300] == std::byte{1});
}

TEST_MAIN
