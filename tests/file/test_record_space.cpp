// The places of records: classes of capacity, and space that is given out and used again.
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include "file/record_space.hpp"
#include "support/check.hpp"

using outcore::file::RecordSpace;
namespace record_class = outcore::file::record_class;

namespace {

constexpr std::int64_t granule_bytes = 64;

/// Extents one after another.
struct Extents {
  std::int64_t next = 0;
  RecordSpace space{granule_bytes, 64, [this](std::int64_t, std::int64_t wanted) {
                      return RecordSpace::Extent{std::exchange(next, next + wanted), wanted};
                    }};
  RecordSpace::Allocation take(std::int64_t size_bytes) { return space.take(size_bytes).value(); }
};

}  // namespace

TEST("the class of a size is the smallest that holds it, and wastes a ninth at most") {
  for (std::int64_t granules = 1; granules < 5000; ++granules) {
    const int found = record_class::of(granules);
    check::is_true(record_class::granules(found) >= granules);
    if (found > 0) check::is_true(record_class::granules(found - 1) < granules);
    check::is_true((record_class::granules(found) - granules) * 9 <= record_class::granules(found));
  }
}

TEST("the largest class holds a terabyte") {
  check::is_true(record_class::granules(record_class::largest) * granule_bytes >= std::int64_t{1} << 40);
  check::equal(record_class::of(std::int64_t{1} << 34), record_class::of((std::int64_t{1} << 34) - 1));
  check::is_true(record_class::of(std::int64_t{1} << 34) <= record_class::largest);
}

TEST("places never overlap, whatever is taken and given back") {
  Extents extents;
  std::mt19937_64 random(3);
  std::vector<RecordSpace::Allocation> held;
  std::map<std::int64_t, std::int64_t> used;  // first granule: count
  for (int turn = 0; turn < 5000; ++turn) {
    if (!held.empty() && random() % 2 == 0) {
      const std::size_t k = random() % held.size();
      extents.space.give(held[k]);
      used.erase(held[k].granule);
      held[k] = held.back();
      held.pop_back();
      continue;
    }
    const auto size = static_cast<std::int64_t>(random() % (turn % 10 == 0 ? 20'000 : 1000));
    const auto allocation = extents.take(size);
    check::is_true(extents.space.capacity_bytes(allocation) >= size);
    const std::int64_t count = record_class::granules(allocation.size_class);
    const auto after = used.lower_bound(allocation.granule);
    check::is_true(after == used.end() || allocation.granule + count <= after->first);
    if (after != used.begin())
      check::is_true(std::prev(after)->first + std::prev(after)->second <= allocation.granule);
    used.emplace(allocation.granule, count);
    held.push_back(allocation);
  }
}

TEST("space given back is joined, and used again before more is taken") {
  Extents extents;
  std::vector<RecordSpace::Allocation> held;
  for (int k = 0; k < 64; ++k) held.push_back(extents.take(64));
  check::equal(extents.next, 64);
  check::equal(extents.space.free_bytes(), 0);
  for (const auto& each : held) extents.space.give(each);
  const auto whole = extents.take(64 * 64);
  check::equal(whole.granule, 0);
  check::equal(extents.next, 64);
}

TEST("the smallest gap that is large enough is taken") {
  Extents extents;
  const auto large = extents.take(10 * 64);
  (void)extents.take(64);
  const auto small = extents.take(2 * 64);
  (void)extents.take(51 * 64 - 64);
  extents.space.give(large);
  extents.space.give(small);
  check::equal(extents.take(2 * 64).granule, small.granule);
}

TEST("a record larger than an extent gets one of its own") {
  Extents extents;
  const auto allocation = extents.take(1000 * 64);
  check::is_true(extents.next >= 1000);
  check::is_true(extents.space.capacity_bytes(allocation) >= 1000 * 64);
}

TEST("a failure to take more leaves what there was") {
  int calls = 0;
  RecordSpace space(granule_bytes, 64, [&](std::int64_t, std::int64_t wanted) -> RecordSpace::Extent {
    if (calls++ > 0) throw std::runtime_error("full");
    return {0, wanted};
  });
  const auto allocation = space.take(32 * 64).value();
  const auto free_bytes = space.free_bytes();
  check::throws<std::runtime_error>([&] { (void)space.take(100 * 64); });
  check::equal(space.free_bytes(), free_bytes);
  space.give(allocation);
  check::equal(space.free_bytes(), 64 * 64);
}

TEST("the last extent is what there is, and then there is none") {
  constexpr std::int64_t all = 100;
  std::int64_t next = 0;
  RecordSpace space(8, 64,
                    [&](std::int64_t least, std::int64_t wanted) -> std::optional<RecordSpace::Extent> {
                      const std::int64_t granules = next + wanted <= all ? wanted : least;
                      if (next + granules > all) return std::nullopt;
                      return RecordSpace::Extent{std::exchange(next, next + granules), granules};
                    });
  for (int k = 0; k < 12; ++k) check::equal(space.take(8 * 8).value().granule, 8 * k);
  check::is_true(!space.take(8 * 8));
  check::equal(space.take(4 * 8).value().granule, 96);
  check::equal(space.free_bytes(), 0);
}

TEST_MAIN
