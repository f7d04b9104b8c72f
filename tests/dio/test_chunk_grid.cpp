// The closed forms of the chunk grid against loops over all chunks; the choice of chunks.
#include <cerrno>
#include <random>
#include <set>
#include <vector>

#include "dio/chunks/grid.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore;

namespace {

struct Case {
  dio::ChunkGrid grid;
  Box box;
};

Case random_case(std::mt19937& random) {
  const auto upto = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
  };
  const int rank = static_cast<int>(upto(max_rank));
  const std::int64_t longest = rank < 3 ? 60 : rank < 5 ? 9 : 4;
  Extents shape = Extents::filled(rank, 1), chunk = shape;
  for (int i = 0; i < rank; ++i) {
    shape[i] = upto(longest);
    chunk[i] = upto(shape[i] + 1);
  }
  Box box = Box::whole(shape);
  if (random() % 5 != 0)
    for (int i = 0; i < rank; ++i) {
      if (random() % 3 == 0) continue;
      box.begin[i] = upto(shape[i]) - 1;
      box.end[i] = box.begin[i] + upto(shape[i] - box.begin[i]);
    }
  return {{shape, chunk, 8, static_cast<int>(upto(6)), upto(7)}, box};
}

/// Slots of the component that meet the box, one by one.
std::vector<std::int64_t> slots_by_brute_force(const Case& c, int component) {
  std::vector<std::int64_t> slots;
  for (std::int64_t k = 0; k < c.grid.chunks(); ++k)
    if (c.grid.locate(k).component == component && !intersection(c.grid.chunk_box(k), c.box).empty())
      slots.push_back(c.grid.locate(k).slot);
  return slots;
}

void visits_as_brute_force(const Case& c, int component) {
  std::vector<std::int64_t> visited;
  store::SlotRange last{-1, 0};
  c.grid.for_each_slot_range(component, c.box, [&](const store::SlotRange& range) {
    check::is_true(range.count >= 1, "length of the range");
    check::is_true(range.first_slot > last.first_slot + last.count || last.first_slot < 0,
                   "ranges are as long as can be");
    for (std::int64_t i = 0; i < range.count; ++i) visited.push_back(range.first_slot + i);
    last = range;
  });
  check::is_true(visited == slots_by_brute_force(c, component), "the slots that meet the box, in order");
  check::equal(c.grid.count(component, c.box), static_cast<std::int64_t>(visited.size()));
}

int refused(const std::function<void()>& body) {
  return check::throws<Error>(body).errno_value();
}

}  // namespace

TEST("ranges of slots cover exactly the chunks that meet a box, in order, as long as can be") {
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    const Case c = random_case(random);
    for (int component = 0; component < c.grid.components(); ++component) visits_as_brute_force(c, component);
  }
}

TEST("every chunk has a place of its own, slots have no holes, and the way back is right") {
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    const dio::ChunkGrid grid = random_case(random).grid;
    std::vector<std::set<std::int64_t>> slots(static_cast<std::size_t>(grid.components()));
    for (std::int64_t k = 0; k < grid.chunks(); ++k) {
      const auto location = grid.locate(k);
      check::is_true(slots.at(static_cast<std::size_t>(location.component)).insert(location.slot).second);
      check::equal(grid.chunk_at(location.component, location.slot), k);
      check::equal(grid.chunk_holding(grid.chunk_box(k).begin), k);
    }
    for (int component = 0; component < grid.components(); ++component) {
      const auto& mine = slots[static_cast<std::size_t>(component)];
      check::equal(grid.slots(component), static_cast<std::int64_t>(mine.size()));
      if (!mine.empty()) check::equal(*mine.rbegin(), grid.slots(component) - 1);
    }
  }
}

TEST("the boxes of the chunks tile the array") {
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    const dio::ChunkGrid grid = random_case(random).grid;
    std::int64_t volume = 0;
    for (std::int64_t k = 0; k < grid.chunks(); ++k) {
      const Box box = grid.chunk_box(k);
      check::is_true(!box.empty() && Box::whole(grid.shape()).contains(box));
      volume += box.volume();
    }
    check::equal(volume, grid.shape().product());
  }
}

TEST("a whole array of one component is one range") {
  const dio::ChunkGrid grid({1000, 1000}, {128, 128}, 8, 1);
  int ranges = 0;
  grid.for_each_slot_range(0, Box::whole(grid.shape()), [&](const store::SlotRange& range) {
    ++ranges;
    check::is_true((range == store::SlotRange{0, 64}));
  });
  check::equal(ranges, 1);
}

TEST("groups of all components have a share of a section") {
  const dio::ChunkGrid grid({10000, 10000}, {128, 128}, 8, 4);
  for (int component = 0; component < 4; ++component) {
    const std::int64_t share = grid.count(component, {{600, 300}, {5600, 5300}});
    check::is_true(share > 1600 * 0.22 && share < 1600 * 0.29, std::to_string(share).c_str());
  }
}

TEST("an empty box meets nothing") {
  const dio::ChunkGrid grid({10, 10}, {3, 3}, 8, 2);
  check::equal(grid.count(0, {{4, 4}, {4, 9}}), 0);
}

TEST("a box outside of the array, or a component that is not there, is refused") {
  const dio::ChunkGrid grid({10, 10}, {3, 3}, 8, 2);
  check::equal(refused([&] { (void)grid.count(0, {{0, 0}, {11, 10}}); }), EINVAL);
  check::equal(refused([&] { (void)grid.count(0, {{-1, 0}, {10, 10}}); }), EINVAL);
  check::equal(refused([&] { (void)grid.count(0, {{0}, {10}}); }), EINVAL);
  check::equal(refused([&] { (void)grid.count(2, {{0, 0}, {10, 10}}); }), EINVAL);
}

TEST("grids that are none are refused") {
  check::equal(refused([] { dio::ChunkGrid({}, {}, 8, 1); }), EINVAL);
  check::equal(refused([] { dio::ChunkGrid({4, 4}, {4}, 8, 1); }), EINVAL);
  check::equal(refused([] { dio::ChunkGrid({4, -1}, {4, 4}, 8, 1); }), EINVAL);
  check::equal(dio::ChunkGrid({4, 0}, {4, 4}, 8, 2).chunks(), std::int64_t{0});
  check::equal(refused([] { dio::ChunkGrid({4, 4}, {4, -1}, 8, 1); }), EINVAL);
  check::equal(refused([] { dio::ChunkGrid({4, 4}, {4, 4}, 0, 1); }), EINVAL);
  check::equal(refused([] { dio::ChunkGrid({4, 4}, {4, 4}, 8, 0); }), EINVAL);
  check::equal(refused([] { dio::ChunkGrid({4, 4}, {4, 4}, 8, 1, 0); }), EINVAL);
  const auto error = check::throws<Error>([] { dio::ChunkGrid({1LL << 40, 1LL << 40}, {8, 8}, 8, 1); });
  check::contains(error.what(), "2^62");
}

TEST(
    "chunks are square when nothing is known of their use, but four times as high, because they are read in "
    "parts") {
  check::is_true(dio::choose_chunk({10000, 10000}, 8) == Extents({256, 64}));
  check::is_true(dio::choose_chunk({5000, 5000}, 8) == Extents({256, 64}));
  check::is_true(dio::choose_chunk({1000, 1000, 1000}, 8) == Extents({64, 16, 16}));
  check::is_true(dio::choose_chunk({1 << 20}, 8) == Extents({16384}));
}

TEST("chunks follow the shape of the typical section") {
  check::is_true(dio::choose_chunk({10000, 10000}, 8, {1, 10000}) == Extents({1, 10000}));
  check::is_true(dio::choose_chunk({100000, 100000}, 8, {10, 160}) == Extents({32, 512}));
  check::is_true(dio::choose_chunk({10000, 10000}, 8, {10000, 1}) == Extents({10000, 1}));
}

TEST("chunks divide the array evenly rather than leave most of the last one empty") {
  check::is_true(dio::choose_chunk({130, 130}, 8) == Extents({130, 48}));
  check::is_true(dio::choose_chunk({50, 50}, 8) == Extents({50, 50}));
}

TEST("chosen chunks are never larger than the array, nor than the target, nor much smaller") {
  std::mt19937 random(4);
  for (int i = 0; i < 5000; ++i) {
    const int rank = 1 + static_cast<int>(random() % max_rank);
    Extents shape = Extents::filled(rank, 1), section = shape;
    for (int d = 0; d < rank; ++d) {
      shape[d] = 1 + static_cast<std::int64_t>(random() % (random() % 3 == 0 ? 5 : rank > 4 ? 90 : 4000));
      section[d] = 1 + static_cast<std::int64_t>(random() % 5000);
    }
    const std::size_t element = std::size_t{1} << random() % 5;
    const std::int64_t target = 1LL << (10 + random() % 12);
    const Extents chunk = dio::choose_chunk(shape, element, random() % 2 ? section : Extents{}, target);
    const dio::ChunkGrid grid(shape, chunk, element, 1);
    for (int d = 0; d < rank; ++d) check::is_true(chunk[d] >= 1 && chunk[d] <= shape[d]);
    check::is_true(grid.chunk_bytes() <= target, chunk.text().c_str());
    const auto all = static_cast<double>(shape.product()) * static_cast<double>(element);
    const auto least = std::min(static_cast<double>(target), all);
    // Halved by the last doubling that did not fit, in one dimension, and by making chunks equal.
    check::is_true(static_cast<double>(grid.chunk_bytes()) >= least / 4 || rank > 1, "not much smaller");
  }
}

TEST("a choice of chunks for what is no array, or no section of it, is refused") {
  check::equal(refused([] { (void)dio::choose_chunk({}, 8); }), EINVAL);
  check::equal(refused([] { (void)dio::choose_chunk({3, -1}, 8); }), EINVAL);
  check::is_true(dio::choose_chunk({3, 0}, 8) == Extents{3, 1});
  check::equal(refused([] { (void)dio::choose_chunk({3, 3}, 8, {3}); }), EINVAL);
  check::equal(refused([] { (void)dio::choose_chunk({3, 3}, 8, {3, 0}); }), EINVAL);
}

TEST_MAIN
