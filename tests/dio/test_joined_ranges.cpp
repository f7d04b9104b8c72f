// How ranges of a file are joined into requests.
#include <vector>

#include "dio/stripes/joined_ranges.hpp"
#include "support/check.hpp"

using outcore::dio::JoinedRanges;
using outcore::dio::TransferRange;

namespace {

struct Memory {
  std::vector<std::byte> bytes = std::vector<std::byte>(1 << 20, std::byte{1});
  TransferRange at(std::int64_t offset, std::int64_t size) { return {{offset, size}, bytes.data() + offset}; }
};

}  // namespace

TEST("neighbours become one request, in the order of the file") {
  Memory memory;
  std::vector<TransferRange> ranges{memory.at(200, 100), memory.at(0, 100), memory.at(100, 100)};
  const JoinedRanges joined(ranges, true);
  check::equal(joined.all().size(), 1U);
  check::equal(joined.all()[0].offset, 0);
  check::equal(joined.all()[0].size_bytes, 300);
  check::equal(joined.list(joined.all()[0]).size(), 3U);
  check::is_true(!joined.sieves());
}

TEST("a read passes over gaps that are cheap, a write over none") {
  Memory memory;
  std::vector<TransferRange> ranges{memory.at(0, 100), memory.at(1000, 100)};
  const JoinedRanges read(ranges, false), write(ranges, true);
  check::equal(read.all().size(), 1U);
  check::equal(read.all()[0].size_bytes, 1100);
  check::is_true(read.sieves());
  check::equal(write.all().size(), 2U);
}

TEST("gaps that cost more than a request are not read") {
  Memory memory;
  std::vector<TransferRange> ranges{memory.at(0, 100), memory.at(100 + JoinedRanges::max_gap_bytes + 1, 100)};
  check::equal(JoinedRanges(ranges, false).all().size(), 2U);
}

TEST("the same bytes may be read twice") {
  Memory memory;
  std::vector<TransferRange> ranges{memory.at(0, 100), memory.at(50, 100)};
  check::equal(JoinedRanges(ranges, false).all().size(), 2U);
}

TEST("what lies beyond the end of the file reads as zeros") {
  Memory memory;
  std::vector<TransferRange> ranges{memory.at(0, 100), memory.at(200, 100)};
  const JoinedRanges joined(ranges, false);
  joined.zero_beyond(joined.all()[0], 250);
  check::is_true(memory.bytes[99] == std::byte{1} && memory.bytes[249] == std::byte{1});
  check::is_true(memory.bytes[250] == std::byte{0} && memory.bytes[299] == std::byte{0});
  check::is_true(memory.bytes[300] == std::byte{1});
}

TEST_MAIN
