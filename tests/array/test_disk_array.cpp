// Disk arrays against an array in memory: on one to four processes, on one node and on several.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "array/arrays.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/error.hpp"
#include "outcore/trace.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using outcore::test::errno_of;
using outcore::test::fill;
using outcore::test::for_each_index;
using outcore::test::in_worlds;
using outcore::test::Model;
using outcore::test::options_in;
using outcore::test::value_at;
namespace fs = std::filesystem;

namespace {

void expect_equal(GlobalArray& array, Model& expected) {
  Model got(array.shape());
  const Box all = Box::whole(array.shape());
  array.get(all, got.memory(all));
  check::is_true(got.data == expected.data, "the array read is the array written");
}

/// A random section of a global array is written in a random order of axes, another read back; the whole is
/// compared.
void write_and_read_sections(World& world, unsigned seed, store::CodecOptions codec) {
  std::mt19937 random(seed);
  const int rank = 1 + static_cast<int>(random() % 4);
  const Extents shape = test::random_shape(random, rank, rank < 3 ? 60 : 12);
  DiskArrayOptions options{.codec = codec};
  if (random() % 2) options.chunk = test::random_box(random, shape).shape();
  DiskArray disk(world, shape, ElementType::float64, options);
  Model model(shape);
  for (int round = 0; round < 3; ++round) {
    const Box box = test::random_box(random, shape);
    std::vector<int> order(static_cast<std::size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    Section section{Box::whole(box.shape()), order};
    Extents margin = test::random_shape(random, rank, 3), memory_shape = margin;
    for (int k = 0; k < rank; ++k) {
      const int axis = order[static_cast<std::size_t>(k)];
      section.box.begin[axis] = margin[axis];
      section.box.end[axis] = margin[axis] + box.end[k] - box.begin[k];
      memory_shape[axis] = section.box.end[axis] + 1;
    }
    GlobalArray array(world, memory_shape, ElementType::float64);
    fill(array, seed + round);
    disk.write_all_async(array, section, box).wait();
    for_each_index(box, [&](const Extents& index) {
      Extents source = index;
      for (int k = 0; k < rank; ++k) {
        const int axis = order[static_cast<std::size_t>(k)];
        source[axis] = section.box.begin[axis] + index[k] - box.begin[k];
      }
      model.data[model.at(index)] = value_at(source, seed + round);
    });
    world.barrier();
  }
  GlobalArray back(world, shape, ElementType::float64);
  const Box part = test::random_box(random, shape);
  disk.read_all_async(back, {.box = part}, part).wait();
  Model expected(shape);
  for_each_index(part,
                 [&](const Extents& index) { expected.data[model.at(index)] = model.data[model.at(index)]; });
  expect_equal(back, expected);
  disk.read_all_async(back, {.box = Box::whole(shape)}, Box::whole(shape)).wait();
  expect_equal(back, model);
  disk.close();
}

/// Each process writes a slab of its own with memory of its own, and reads a random box.
void write_and_read_blocks(World& world, unsigned seed) {
  std::mt19937 random(seed);
  const int rank = 1 + static_cast<int>(random() % 3);
  Extents shape = test::random_shape(random, rank, rank == 1 ? 3000 : 40);
  shape[0] += world.size();
  DiskArray disk(world, shape, ElementType::float64, {.chunk = test::random_box(random, shape).shape()});
  Model model(shape);
  const Box all = Box::whole(shape);
  for_each_index(all, [&](const Extents& index) { model.data[model.at(index)] = value_at(index, seed); });
  Box mine = all;
  mine.begin[0] = shape[0] * world.rank() / world.size();
  mine.end[0] = shape[0] * (world.rank() + 1) / world.size();
  Model source = model;
  disk.write_all_async(source.memory(mine), mine).wait();
  Model whole(shape);
  disk.read_all_async(whole.memory(all), all).wait();  // the same box everywhere
  check::is_true(whole.data == model.data, "all of it, everywhere");
  std::mt19937 own(seed + static_cast<unsigned>(world.rank()));
  const Box wanted = test::random_box(own, shape);
  Model part(shape), expected(shape);
  disk.read_all_async(part.memory(wanted), wanted).wait();
  for_each_index(wanted,
                 [&](const Extents& index) { expected.data[model.at(index)] = model.data[model.at(index)]; });
  check::is_true(part.data == expected.data, "the box, and nothing beside it");
  disk.close();
}

void for_all_worlds(const std::function<void(World&)>& body) {
  const TemporaryDirectory directory;
  for (const int processes : {1, 2, 3, 4})
    for (const bool distant : {false, true}) in_worlds(processes, options_in(directory, distant), body);
}

}  // namespace

TEST("sections go to disk and back in any order of axes") {
  for_all_worlds([](World& world) {
    for (unsigned seed = 0; seed < 12; ++seed) write_and_read_sections(world, seed, {});
  });
}

TEST("compressed arrays hold the same") {
  for_all_worlds([](World& world) {
    for (unsigned seed = 100; seed < 104; ++seed)
      write_and_read_sections(world, seed, store::blosc2_for(sizeof(double)));
  });
}

TEST("every process moves blocks of its own") {
  for_all_worlds([](World& world) {
    for (unsigned seed = 0; seed < 8; ++seed) write_and_read_blocks(world, seed);
  });
}

TEST("blocks larger than the staging memory pass in rounds") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [](World& world) {
    const Extents shape{1500, 1501};
    DiskArray disk(world, shape, ElementType::float64);
    Model model(shape), back(shape);
    std::iota(model.data.begin(), model.data.end(), 0.0);
    Box mine = Box::whole(shape);
    (world.rank() == 0 ? mine.end : mine.begin)[1] = 700;
    disk.write_all_async(model.memory(mine), mine).wait();
    disk.read_all_async(back.memory(mine), mine).wait();
    for_each_index(mine, [&](const Extents& index) {
      check::equal(back.data[back.at(index)], model.data[model.at(index)]);
    });
    disk.close();
  });
}

TEST("transfers are worked off in order, several outstanding at once") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [](World& world) {
    const Extents shape{64, 64};
    const Box all = Box::whole(shape);
    DiskArray disk(world, shape, ElementType::float64, {.chunk = {16, 16}});
    GlobalArray first(world, shape, ElementType::float64), second(world, shape, ElementType::float64),
        back(world, shape, ElementType::float64);
    fill(first, 1);
    fill(second, 2);
    std::vector<Request> requests;
    for (int i = 0; i < 10; ++i) {
      requests.push_back(disk.write_all_async(first, {.box = all}, all));
      requests.push_back(disk.write_all_async(second, {.box = all}, all));
    }
    requests.push_back(disk.read_all_async(back, {.box = all}, all));
    for (Request& each : requests) each.wait();
    Model expected(shape);
    for_each_index(all,
                   [&](const Extents& index) { expected.data[expected.at(index)] = value_at(index, 2); });
    expect_equal(back, expected);
    disk.close();
  });
}

/// Reads of bands of rows, all outstanding at once, each begun while the one before it ends.
TEST("reads that follow one another bring what each asked for") {
  const TemporaryDirectory directory;
  for (const int processes : {1, 3})
    in_worlds(processes, options_in(directory), [](World& world) {
      const Extents shape{140, 40'000};  // bands of more bytes than are read at once, and of fewer
      const Box all = Box::whole(shape);
      DiskArray disk(world, shape, ElementType::float64, {.chunk = {8, 1000}});
      GlobalArray source(world, shape, ElementType::float64);
      fill(source, 3);
      disk.write_all_async(source, {.box = all}, all).wait();
      constexpr std::int64_t heights[] = {84, 1, 7, 30, 18};
      std::vector<std::unique_ptr<GlobalArray>> bands;
      std::vector<Request> requests;
      std::int64_t first = 0;
      for (const std::int64_t height : heights) {
        bands.push_back(
            std::make_unique<GlobalArray>(world, Extents{height, shape[1]}, ElementType::float64));
        const Box box{{first, 0}, {first += height, shape[1]}};
        requests.push_back(
            disk.read_all_async(*bands.back(), {.box = Box::whole(bands.back()->shape())}, box));
      }
      for (Request& each : requests) each.wait();
      first = 0;
      for (const auto& band : bands) {
        Model expected(band->shape());
        for_each_index(Box::whole(band->shape()), [&](const Extents& index) {
          expected.data[expected.at(index)] = value_at({index[0] + first, index[1]}, 3);
        });
        expect_equal(*band, expected);
        first += band->shape()[0];
      }
      disk.close();
    });
}

TEST("a read that was begun ahead sees what others put before they asked for it") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [](World& world) {
    const Extents shape{64, 1000};
    const Box lower{{0, 0}, {32, 1000}}, half{{32, 0}, shape};
    DiskArray disk(world, shape, ElementType::float64, {.chunk = {8, 1000}});
    GlobalArray first(world, shape, ElementType::float64), second(world, shape, ElementType::float64);
    for (int round = 1; round <= 20; ++round) {
      Request earlier = disk.read_all_async(first, {.box = lower}, lower);
      if (world.rank() == 1) {
        Model model(half.shape());
        std::ranges::fill(model.data, round);
        disk.put(half, model.memory(Box::whole(half.shape())));
      }
      Request later = disk.read_all_async(second, {.box = half}, half);
      earlier.wait();
      later.wait();
      Model seen(half.shape());
      second.get(half, seen.memory(Box::whole(half.shape())));
      check::is_true(std::ranges::all_of(seen.data, [&](double value) { return value == round; }));
      world.barrier();
    }
    disk.close();
  });
}

TEST("what was never written reads as zeros") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [](World& world) {
    const Extents shape{30, 30};
    DiskArray disk(world, shape, ElementType::float64);
    Model back(shape), zeros(shape);
    std::fill(back.data.begin(), back.data.end(), 1.0);
    disk.read_all_async(back.memory(Box::whole(shape)), Box::whole(shape)).wait();
    check::is_true(back.data == zeros.data);
    disk.close();
  });
}

TEST("a persistent array opens with any number of processes") {
  for (const int writers : {1, 2, 3, 4})
    for (const int readers : {1, 2, 3, 4}) {
      const TemporaryDirectory directory;
      const std::string path = directory.path() + "/array";
      const Extents shape{50, 40};
      const Box all = Box::whole(shape);
      in_worlds(writers, options_in(directory), [&](World& world) {
        DiskArray disk(world, shape, ElementType::float64,
                       {.path = path, .chunk = {7, 9}, .metadata = "amplitudes"});
        GlobalArray array(world, shape, ElementType::float64);
        fill(array, 3);
        disk.write_all_async(array, {.box = all}, all);
        disk.close();
      });
      in_worlds(readers, options_in(directory), [&](World& world) {
        DiskArray disk = DiskArray::open(world, path);
        check::is_true(disk.shape() == shape && disk.chunk() == Extents{7, 9});
        check::equal(disk.metadata(), "amplitudes");
        GlobalArray back(world, shape, ElementType::float64);
        disk.read_all_async(back, {.box = all}, all).wait();
        Model expected(shape);
        for_each_index(all,
                       [&](const Extents& index) { expected.data[expected.at(index)] = value_at(index, 3); });
        expect_equal(back, expected);
        disk.close();
      });
    }
}

TEST("an array on local disks is found part by part") {
  const TemporaryDirectory directory;
  const Extents shape{50, 40};
  const Box all = Box::whole(shape);
  const std::string path = directory.path() + "/disk{node}";
  in_worlds(3, options_in(directory, true), [&](World& world) {
    DiskArray disk(world, shape, ElementType::float64, {.path = path, .chunk = {7, 9}});
    check::is_true(disk.placement() == Placement::local, "no process sees the directory of another");
    GlobalArray array(world, shape, ElementType::float64);
    fill(array, 4);
    disk.write_all_async(array, {.box = all}, all);
    disk.close();
  });
  check::is_true(fs::exists(directory.path() + "/disk2/component.2") &&
                 !fs::exists(directory.path() + "/disk0/component.2"));
  const auto read = [&](World& world) {
    DiskArray disk = DiskArray::open(world, path);
    Model back(shape), expected(shape);
    disk.read_all_async(back.memory(all), all).wait();
    for_each_index(all,
                   [&](const Extents& index) { expected.data[expected.at(index)] = value_at(index, 4); });
    check::is_true(back.data == expected.data);
    disk.close();
  };
  in_worlds(3, options_in(directory, true), read);
  in_worlds(4, options_in(directory, true), read);  // one node has no part of it
  in_worlds(2, options_in(directory, true), [&](World& world) {
    const Error error = check::throws<Error>([&] { (void)DiskArray::open(world, path); });
    check::equal(error.errno_value(), ENOENT);
    check::contains(error.what(), "component.2");
  });
}

TEST("an array on local disks of which some nodes have nothing is found") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/disk{node}";
  in_worlds(3, options_in(directory, true), [&](World& world) {
    DiskArray disk(world, {1}, ElementType::float64, {.path = path});
    double value = 7;
    if (world.rank() == 2) disk.put({{0}, {1}}, {reinterpret_cast<std::byte*>(&value), {8}});
    world.barrier();
    disk.close();
  });
  for (const int readers : {1, 2, 3})
    in_worlds(readers, options_in(directory, true), [&](World& world) {
      DiskArray disk = DiskArray::open(world, path);
      double value = 0;
      disk.get({{0}, {1}}, {reinterpret_cast<std::byte*>(&value), {8}});
      check::equal(value, 7.0);
      world.barrier();
      disk.close();
    });
}

TEST("what was not committed is not there") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/array";
  const Extents shape{40, 40};
  const Box all = Box::whole(shape);
  in_worlds(2, options_in(directory), [&](World& world) {
    GlobalArray array(world, shape, ElementType::float64);
    {
      DiskArray disk(world, shape, ElementType::float64, {.path = path});
      check::equal(errno_of([&] { (void)DiskArray::open(world, path); }), ENOENT);
      fill(array, 5);
      disk.write_all_async(array, {.box = all}, all).wait();
      disk.flush();
      fill(array, 6);
      disk.write_all_async(array, {.box = all}, all).wait();  // and dropped
    }
    DiskArray disk = DiskArray::open(world, path, false);
    GlobalArray back(world, shape, ElementType::float64);
    Model expected(shape);
    disk.read_all_async(back, {.box = all}, all).wait();
    for_each_index(all,
                   [&](const Extents& index) { expected.data[expected.at(index)] = value_at(index, 5); });
    expect_equal(back, expected);
    disk.write_all_async(array, {.box = all}, all).wait();
    disk.close();
    disk = DiskArray::open(world, path);
    disk.read_all_async(back, {.box = all}, all).wait();
    for_each_index(all,
                   [&](const Extents& index) { expected.data[expected.at(index)] = value_at(index, 6); });
    expect_equal(back, expected);
    disk.close();
  });
}

TEST("an array is made once") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/array";
  in_worlds(2, options_in(directory), [&](World& world) {
    DiskArray disk(world, {10}, ElementType::int32, {.path = path});
    disk.close();
    check::equal(errno_of([&] { DiskArray(world, {10}, ElementType::int32, {.path = path}); }), EEXIST);
    DiskArray again(world, {20}, ElementType::int64, {.path = path, .overwrite = true});
    again.remove();
    check::is_true(!fs::exists(path));
  });
}

TEST("chunks that are larger than a buffer are written and read") {
  const TemporaryDirectory directory;
  for (const int processes : {1, 2})
    in_worlds(processes, options_in(directory), [](World& world) {
      const Extents shape{4, 300'000};
      const Box all = Box::whole(shape);
      DiskArray disk(world, shape, ElementType::float64, {.chunk = {1, 300'000}, .group = 1});  // 2.4 MB
      GlobalArray source(world, shape, ElementType::float64), back(world, shape, ElementType::float64);
      fill(source, 5);
      disk.write_all_async(source, {.box = all}, all).wait();
      disk.read_all_async(back, {.box = all}, all).wait();
      Model expected(shape);
      for_each_index(all,
                     [&](const Extents& index) { expected.data[expected.at(index)] = value_at(index, 5); });
      expect_equal(back, expected);
      disk.close();
    });
}

TEST("a transfer takes a twelfth of the budget at most") {
  const TemporaryDirectory directory;
  WorldOptions options = options_in(directory);
  options.memory_bytes = 48 << 20;
  in_worlds(1, options, [](World& world) {
    const std::int64_t most = world.budget().limit_bytes() / 12;
    check::is_true(DiskArray::transfer_bytes(world) <= most && DiskArray::transfer_bytes(world) > most / 2);
    const Extents shape{128, 16'000};
    const Box all = Box::whole(shape);
    DiskArray disk(world, shape, ElementType::float64, {.chunk = {1, 16'000}});
    GlobalArray array(world, shape, ElementType::float64), back(world, shape, ElementType::float64);
    fill(array, 7);
    disk.write_all_async(array, {.box = all}, all).wait();
    const std::int64_t rest = world.budget().limit_bytes() - world.budget().used_bytes() - most;
    world.budget().reserve(rest, "all but a twelfth");
    disk.read_all_async(back, {.box = all}, all).wait();
    world.budget().release(rest);
    Model expected(shape);
    for_each_index(all,
                   [&](const Extents& index) { expected.data[expected.at(index)] = value_at(index, 7); });
    expect_equal(back, expected);
    disk.close();
  });
}

TEST("space on the disk is reserved before anything is written, by either kind of write") {
  const TemporaryDirectory directory;
  in_worlds(1, options_in(directory), [](World& world) {
    const Extents shape{64, 40'000};
    const Box all = Box::whole(shape);
    GlobalArray source(world, shape, ElementType::float64);
    Model model(shape);
    for (const bool blocks : {false, true}) {
      DiskArray disk(world, shape, ElementType::float64, {.chunk = {8, 1000}});
      trace::reset_counters();
      (blocks ? disk.write_all_async(model.memory(all), all)
              : disk.write_all_async(source, {.box = all}, all))
          .wait();
      const trace::Snapshot now = trace::snapshot();
      const auto& reserved =
          now.counters[std::size_t(trace::Layer::device)][std::size_t(trace::Op::preallocate)];
      check::is_true(reserved.bytes >= 64 * 40'000 * 8);
      disk.close();
    }
  });
}

TEST("of large chunks no more is read than the blocks that are touched") {
  const TemporaryDirectory directory;
  in_worlds(1, options_in(directory), [](World& world) {
    const Extents shape{1024, 1024};
    DiskArray disk(world, shape, ElementType::float64, {.chunk = {1024, 1024}});  // 8 MiB, 64 blocks
    Model model(shape), back(shape);
    std::iota(model.data.begin(), model.data.end(), 0.0);
    disk.write_all_async(model.memory(Box::whole(shape)), Box::whole(shape)).wait();
    trace::reset_counters();
    const Box rows{{500, 100}, {502, 200}};
    disk.read_all_async(back.memory(rows), rows).wait();
    for_each_index(rows, [&](const Extents& index) {
      check::equal(back.data[back.at(index)], model.data[model.at(index)]);
    });
    const trace::Snapshot now = trace::snapshot();
    const trace::Counter& read =
        now.counters[std::size_t(trace::Layer::device)][std::size_t(trace::Op::read_async)];
    check::is_true(read.bytes > 0 && read.bytes <= 2 * (128 << 10), "at most two blocks");
    disk.close();
  });
}

TEST("of large chunks the blocks between those that are touched are not read") {
  const TemporaryDirectory directory;
  in_worlds(1, options_in(directory), [](World& world) {
    const Extents shape{4, 512, 512};
    DiskArray disk(world, shape, ElementType::float64, {.chunk = shape});  // 8 MiB, 2 for each of the first
    Model model(shape), back(shape);
    std::iota(model.data.begin(), model.data.end(), 0.0);
    disk.write_all_async(model.memory(Box::whole(shape)), Box::whole(shape)).wait();
    trace::reset_counters();
    const Box rows{{0, 300, 100}, {4, 302, 200}};
    disk.read_all_async(back.memory(rows), rows).wait();
    for_each_index(rows, [&](const Extents& index) {
      check::equal(back.data[back.at(index)], model.data[model.at(index)]);
    });
    const trace::Snapshot now = trace::snapshot();
    const trace::Counter& read =
        now.counters[std::size_t(trace::Layer::device)][std::size_t(trace::Op::read_async)];
    check::is_true(read.bytes > 0 && read.bytes <= 4 * 2 * (128 << 10), "at most two blocks of each");
    disk.close();
  });
}

TEST("a section that ends within chunks reads whole ones in one piece, and of others the blocks it touches") {
  const TemporaryDirectory directory;
  in_worlds(1, options_in(directory), [](World& world) {
    const Extents shape{1024, 512};
    DiskArray disk(world, shape, ElementType::float64);
    check::is_true(disk.chunk() == Extents({256, 64}));  // blocks of 32 rows
    Model model(shape), back(shape);
    std::iota(model.data.begin(), model.data.end(), 0.0);
    disk.write_all_async(model.memory(Box::whole(shape)), Box::whole(shape)).wait();
    trace::reset_counters();
    const Box box{{0, 0}, {300, 512}};
    disk.read_all_async(back.memory(box), box).wait();
    for_each_index(box, [&](const Extents& index) {
      check::equal(back.data[back.at(index)], model.data[model.at(index)]);
    });
    const trace::Snapshot now = trace::snapshot();
    const trace::Counter& read =
        now.counters[std::size_t(trace::Layer::device)][std::size_t(trace::Op::read_async)];
    check::equal(read.bytes, 8 * (128 << 10) + 8 * 2 * (16 << 10));
    check::equal(read.count, 1 + 8);
    disk.close();
  });
}

TEST("sections of chunks that end in part of a block, in several ranges, some never written") {
  const TemporaryDirectory directory;
  in_worlds(1, options_in(directory), [](World& world) {
    const Extents shape{4, 230, 48};
    DiskArray disk(world, shape, ElementType::float64,
                   {.chunk = {2, 115, 48}});  // 88320 bytes, blocks of 8 KiB
    Model model(shape), back(shape);
    const Box written{{0, 0, 0}, {2, 230, 48}};
    for_each_index(written,
                   [&](const Extents& index) { model.data[model.at(index)] = value_at(index, 1.0); });
    disk.write_all_async(model.memory(written), written).wait();
    for (const Box& box :
         {Box{{0, 110, 40}, {4, 120, 48}}, Box{{0, 0, 0}, {4, 1, 1}}, Box{{0, 114, 47}, {4, 115, 48}},
          Box{{1, 0, 0}, {3, 230, 48}}, Box{{0, 60, 0}, {4, 70, 48}}}) {
      std::ranges::fill(back.data, -1.0);
      disk.read_all_async(back.memory(box), box).wait();
      for_each_index(box, [&](const Extents& index) {
        check::equal(back.data[back.at(index)], model.data[model.at(index)]);
      });
    }
    disk.close();
  });
}

TEST("of small chunks a row reads a quarter, also after a commit by who opened the array") {
  const TemporaryDirectory directory;
  in_worlds(1, options_in(directory), [&](World& world) {
    const Extents shape{256, 256};
    const std::string path = directory.path() + "/array";
    Model model(shape), back(shape);
    std::iota(model.data.begin(), model.data.end(), 0.0);
    {
      DiskArray disk(world, shape, ElementType::float64, {.path = path, .chunk = {64, 64}});
      disk.write_all_async(model.memory(Box::whole(shape)), Box::whole(shape)).wait();
      disk.close();
    }
    for (const bool commits : {true, false}) {
      DiskArray disk = DiskArray::open(world, path, !commits);
      if (commits) disk.flush("again");
      trace::reset_counters();
      const Box row{{100, 0}, {101, 256}};
      disk.get(row, back.memory(row));
      for_each_index(row, [&](const Extents& index) {
        check::equal(back.data[back.at(index)], model.data[model.at(index)]);
      });
      const trace::Snapshot now = trace::snapshot();
      const trace::Counter& read =
          now.counters[std::size_t(trace::Layer::device)][std::size_t(trace::Op::read_async)];
      check::equal(read.bytes, 4 * 8192);
      disk.close();
    }
  });
}

TEST_MAIN
