// Block-sparse arrays against an array in memory, on one to four processes.
#include <cerrno>
#include <numeric>
#include <random>

#include "array/arrays.hpp"
#include "outcore/error.hpp"
#include "outcore/sparse_array.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using outcore::test::in_worlds;

namespace {

std::vector<std::int64_t> random_boundaries(std::mt19937& random) {
  std::vector<std::int64_t> axis{0};
  const auto tiles = 1 + random() % 5;
  for (unsigned i = 0; i < tiles; ++i)
    axis.push_back(axis.back() + 1 + static_cast<std::int64_t>(random() % 9));
  return axis;
}

TileMap random_map(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<std::int64_t>> boundaries;
  std::size_t tiles = 1;
  for (unsigned i = 0; i < 1 + seed % 4; ++i) {
    boundaries.push_back(random_boundaries(random));
    tiles *= boundaries.back().size() - 1;
  }
  std::vector<bool> nonzero(tiles);
  for (std::size_t i = 0; i < tiles; ++i) nonzero[i] = random() % 3 != 0;
  return {boundaries, nonzero};
}

std::span<std::byte> bytes(std::vector<double>& values) {
  return std::as_writable_bytes(std::span(values));
}

std::vector<double> values_of(const TileMap& map, std::int64_t number) {
  std::vector<double> values(static_cast<std::size_t>(map.elements(number)));
  std::iota(values.begin(), values.end(), 1000.0 * static_cast<double>(number));
  return values;
}

void for_worlds(const std::function<void(World&, const TemporaryDirectory&)>& body) {
  const TemporaryDirectory directory;
  for (const int processes : {1, 2, 3, 4})
    for (const bool distant : {false, true})
      in_worlds(processes,
                {.memory_bytes = 1 << 30, .scratch = directory.path(), .node_for_each_process = distant},
                [&](World& world) { body(world, directory); });
}

}  // namespace

TEST("a map knows its tiles, and is read back from its text") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const TileMap map = random_map(seed);
    std::int64_t volume = 0, seen = 0;
    test::for_each_index(Box::whole(map.grid()), [&](const Extents& tile) {
      volume += map.box(tile).volume();
      if (const std::int64_t number = map.number(tile); number >= 0) {
        check::equal(number, seen++);
        check::is_true(map.tile(number) == tile);
        check::equal(map.elements(number), map.box(tile).volume());
      }
    });
    check::equal(volume, map.shape().product());
    check::equal(seen, map.count());
    std::size_t used = 0;
    const std::string text = map.encode();
    check::is_true(TileMap::decode(text + "more", used) == map);
    check::equal(used, text.size());
  }
}

TEST("what makes no map is refused") {
  using Boundaries = std::vector<std::vector<std::int64_t>>;
  const auto refused = [](const Boundaries& boundaries, std::size_t tiles) {
    check::equal(check::throws<Error>([&] { TileMap(boundaries, std::vector<bool>(tiles)); }).errno_value(),
                 EINVAL);
  };
  refused({}, 1);
  refused(Boundaries(9, {0, 1}), 1);
  refused({{}}, 0);
  check::equal(TileMap({{0}, {0, 3}}, {}).shape().product(), std::int64_t{0});
  refused({{1, 2}}, 1);
  refused({{0, 2, 2}}, 2);
  refused({{0, 2, 1}}, 2);
  refused({{0, 2}, {0, 1, 3}}, 1);
  refused(Boundaries(3, {0, std::int64_t{1} << 40}), 1);
  std::mt19937 random(1);
  const std::string good = random_map(6).encode();
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    text[random() % text.size()] = static_cast<char>(random());
    if (i % 3 == 0) text.resize(random() % text.size());
    std::size_t used = 0;
    try {
      (void)TileMap::decode(text, used);
    } catch (const Error& error) {
      check::equal(error.errno_value(), EINVAL);
    }
  }
}

TEST("large tiles lie in large chunks, of which the cache holds several") {
  for_worlds([](World& world, const TemporaryDirectory&) {
    const auto chunk_bytes = [&](std::int64_t tile_bytes, std::int64_t cache_bytes) {
      const std::int64_t side = tile_bytes / 8;
      const TileMap map({{0, side, 2 * side}}, {true, true});
      BlockSparseArray array(world, map, ElementType::float64, {.caches = {.cache_bytes = cache_bytes}});
      const std::int64_t bytes = array.storage().chunk()[0] * 8;
      world.barrier();
      array.storage().close();
      return bytes;
    };
    constexpr std::int64_t KiB = 1 << 10, MiB = 1 << 20;
    check::equal(chunk_bytes(16 * MiB, 8 * MiB), MiB);
    check::equal(chunk_bytes(16 * MiB, 4 * MiB), 512 * KiB);
    check::equal(chunk_bytes(16 * MiB, -1), 512 * KiB);
    check::equal(chunk_bytes(16 * MiB, 0), 128 * KiB);
    check::equal(chunk_bytes(MiB, 8 * MiB), 256 * KiB);
    check::equal(chunk_bytes(256 * KiB, 8 * MiB), 128 * KiB);
  });
}

TEST("tiles are put by one process and got by all; zero ones are zeros") {
  for_worlds([](World& world, const TemporaryDirectory&) {
    for (unsigned seed = 0; seed < 8; ++seed) {
      const TileMap map = random_map(seed);
      BlockSparseArray array(world, map, ElementType::float64, {.chunk = {1 + seed * 10}});
      std::vector<std::vector<double>> memory;
      std::vector<Request> requests;
      for (std::int64_t k = world.rank(); k < map.count(); k += world.size()) {
        memory.push_back(values_of(map, k));
        requests.push_back(array.put_tile_async(map.tile(k), bytes(memory.back())));
      }
      for (Request& each : requests) each.wait();
      world.barrier();
      test::for_each_index(Box::whole(map.grid()), [&](const Extents& tile) {
        const std::int64_t number = map.number(tile);
        std::vector<double> got(static_cast<std::size_t>(map.box(tile).volume()), -1.0);
        array.prefetch(std::span(&tile, 1));
        array.get_tile(tile, bytes(got));
        check::is_true(got == (number < 0 ? std::vector<double>(got.size()) : values_of(map, number)));
        std::ranges::fill(got, -1.0);
        array.get_tile_async(tile, bytes(got)).wait();
        check::is_true(got == (number < 0 ? std::vector<double>(got.size()) : values_of(map, number)));
        check::equal(array.owner(tile), number < 0 ? -1 : static_cast<int>(number % world.size()));
      });
      world.barrier();
      array.storage().close();
    }
  });
}

TEST("what all processes add to a tile adds up") {
  for_worlds([](World& world, const TemporaryDirectory&) {
    const TileMap map = random_map(5);
    BlockSparseArray array(world, map, ElementType::float64);
    const double alpha = 3;
    for (int round = 0; round < 4; ++round)
      for (std::int64_t k = 0; k < map.count(); ++k) {
        std::vector<double> values = values_of(map, k);
        array.accumulate_tile(map.tile(k), bytes(values), &alpha);
      }
    array.sync();
    world.barrier();
    for (std::int64_t k = 0; k < map.count(); ++k) {
      std::vector<double> got(static_cast<std::size_t>(map.elements(k))), expected = values_of(map, k);
      for (double& each : expected) each *= 12 * world.size();
      array.get_tile(map.tile(k), bytes(got));
      check::is_true(got == expected);
    }
    world.barrier();
    array.storage().close();
  });
}

TEST("a zero tile, an index outside and memory of another size are refused") {
  for_worlds([](World& world, const TemporaryDirectory&) {
    const TileMap map({{0, 2, 5}, {0, 4}}, {true, false});
    BlockSparseArray array(world, map, ElementType::float64);
    std::vector<double> eight(8), twelve(12);
    const auto refused = [](const std::string& text, const std::function<void()>& call) {
      const Error error = check::throws<Error>(call);
      check::equal(error.errno_value(), EINVAL);
      check::contains(error.what(), text);
    };
    refused("tile [1, 0]", [&] { array.put_tile({1, 0}, bytes(twelve)); });
    refused("zero", [&] { (void)array.accumulate_tile_async({1, 0}, bytes(twelve), nullptr); });
    refused("tile [2, 0]", [&] { array.get_tile({2, 0}, bytes(twelve)); });
    refused("tile [0]", [&] { array.get_tile({0}, bytes(eight)); });
    refused("64 bytes", [&] { array.put_tile({0, 0}, bytes(twelve)); });
    refused("96 bytes", [&] { array.get_tile({1, 0}, bytes(eight)); });
    array.storage().close();
    check::equal(check::throws<Error>([&] { array.get_tile({0, 0}, bytes(eight)); }).errno_value(), EBADF);
  });
}

TEST("a persistent one opens with any number of processes") {
  for (const int writers : {1, 3})
    for (const int readers : {1, 2, 4}) {
      const TemporaryDirectory directory;
      const std::string path = directory.path() + "/t2";
      const TileMap map = random_map(7);
      const WorldOptions options{.memory_bytes = 1 << 30, .scratch = directory.path()};
      in_worlds(writers, options, [&](World& world) {
        BlockSparseArray array(world, map, ElementType::float64, {.path = path, .metadata = "\"t2\""});
        for (std::int64_t k = world.rank(); k < map.count(); k += world.size()) {
          std::vector<double> values = values_of(map, k);
          array.put_tile(map.tile(k), bytes(values));
        }
        array.storage().close();
      });
      in_worlds(readers, options, [&](World& world) {
        BlockSparseArray array = BlockSparseArray::open(world, path);
        check::is_true(array.map() == map);
        check::equal(array.metadata(), "\"t2\"");
        for (std::int64_t k = 0; k < map.count(); ++k) {
          std::vector<double> got(static_cast<std::size_t>(map.elements(k)));
          array.get_tile(map.tile(k), bytes(got));
          check::is_true(got == values_of(map, k));
        }
        world.barrier();
        array.storage().close();
        DiskArray(world, {10}, ElementType::float64, {.path = path + "x"}).close();
        const Error error = check::throws<Error>([&] { (void)BlockSparseArray::open(world, path + "x"); });
        check::equal(error.errno_value(), EINVAL);
      });
    }
}

TEST("maps that differ between processes are refused at all") {
  for_worlds([](World& world, const TemporaryDirectory&) {
    if (world.size() == 1) return;
    const TileMap map({{0, 2, 5}}, {true, world.rank() == 0});
    const Error error = check::throws<Error>([&] { BlockSparseArray(world, map, ElementType::float64); });
    check::equal(error.errno_value(), EINVAL);
  });
}

TEST("an array of zeros has no tiles, and is one all the same") {
  for_worlds([](World& world, const TemporaryDirectory&) {
    BlockSparseArray array(world, TileMap({{0, 3}}, {false}), ElementType::float64);
    std::vector<double> got(3, 1.0);
    array.get_tile({0}, bytes(got));
    check::is_true(got == std::vector<double>(3));
    array.storage().close();
  });
}

TEST_MAIN
