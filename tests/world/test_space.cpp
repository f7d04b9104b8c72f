// Places of regions: equal calls give equal places, regions do not overlap, and no space is lost.
#include <random>
#include <utility>
#include <vector>

#include "support/check.hpp"
#include "world/space.hpp"

using outcore::world::Allocation;
using outcore::world::SegmentSpace;

TEST("what is given back is taken again") {
  SegmentSpace space;
  space.add(0, 1 << 20);
  const auto first = space.take(100), second = space.take(100), third = space.take(100);
  check::equal(second->offset, 128);
  space.give(*second);
  check::is_true(space.take(128) == second);
  space.give(*first);
  space.give(*third);
  space.give(*second);
  check::is_true(space.unused(0));
}

TEST("large regions begin at pages and fill them") {
  SegmentSpace space;
  space.add(0, 1 << 20);
  (void)space.take(1);
  const auto large = space.take(100000);
  check::equal(large->offset % SegmentSpace::page, 0);
  check::equal(large->size_bytes % SegmentSpace::page, 0);
  check::equal(space.take(1)->offset, 64);  // the gap before it is not lost
}

TEST("regions of large pages begin at one, and the gap before them is used") {
  SegmentSpace space;
  space.add(0, 4 * SegmentSpace::large_page);
  (void)space.take(1);
  check::equal(space.take(SegmentSpace::large_page + 1)->offset, SegmentSpace::large_page);
  check::equal(space.take(100000)->offset, SegmentSpace::page);
  check::equal(SegmentSpace::whole_large_pages(SegmentSpace::large_page + 1), 2 * SegmentSpace::large_page);
}

TEST("nothing is taken where nothing fits") {
  SegmentSpace space;
  check::is_true(!space.take(1));
  space.add(0, 1024);
  check::is_true(!space.take(1025));
  check::is_true(space.take(1024).has_value());
  check::is_true(!space.take(1));
}

TEST("random regions never overlap") {
  SegmentSpace space;
  constexpr std::int64_t size = 4 << 20;
  space.add(0, size);
  std::vector<char> used(size);
  std::vector<Allocation> held;
  std::mt19937 random(7);
  for (int step = 0; step < 3000; ++step) {
    if (held.empty() || random() % 2 == 0) {
      const std::int64_t wanted = 1 + random() % (step % 3 == 0 ? 200000 : 2000);
      const auto allocation = space.take(wanted);
      if (!allocation) continue;
      check::is_true(allocation->offset >= 0 && allocation->offset + allocation->size_bytes <= size &&
                     allocation->size_bytes >= wanted);
      for (std::int64_t i = 0; i < allocation->size_bytes; ++i)
        check::is_true(std::exchange(used[static_cast<std::size_t>(allocation->offset + i)], 1) == 0,
                       "overlap");
      held.push_back(*allocation);
    } else {
      std::swap(held[random() % held.size()], held.back());
      std::fill_n(used.begin() + held.back().offset, held.back().size_bytes, 0);
      space.give(held.back());
      held.pop_back();
    }
  }
  for (const Allocation& allocation : held) space.give(allocation);
  check::is_true(space.unused(0));
}

TEST_MAIN
