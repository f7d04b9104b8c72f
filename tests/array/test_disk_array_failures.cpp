// Calls that disk arrays refuse, and their behavior when operations fail, on one to four processes.
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "array/arrays.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
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

TEST("a directory with other files is never replaced") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/thesis";
  fs::create_directory(path);
  std::ofstream(path + "/chapter1") << "text";
  in_worlds(2, options_in(directory), [&](World& world) {
    check::equal(
        errno_of([&] { DiskArray(world, {10}, ElementType::int32, {.path = path, .overwrite = true}); }),
        EEXIST);
  });
  check::is_true(fs::exists(path + "/chapter1"));
}

TEST("an array that one node refuses leaves nothing on the others") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/on{node}";
  fs::create_directory(directory.path() + "/on2");
  std::ofstream(directory.path() + "/on2/chapter1") << "text";
  in_worlds(3, options_in(directory, true), [&](World& world) {
    check::equal(errno_of([&] { DiskArray(world, {10}, ElementType::int32, {.path = path}); }), EEXIST);
    world.transport().barrier();
    check::is_true(!fs::exists(directory.path() + "/on0"), "on node 0");
    check::is_true(!fs::exists(directory.path() + "/on1"), "on node 1");
  });
  check::is_true(fs::exists(directory.path() + "/on2/chapter1"), "what was there before stays");
}

TEST("an array opened to read refuses to be written") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/array";
  in_worlds(2, options_in(directory), [&](World& world) {
    DiskArray(world, {10}, ElementType::float64, {.path = path}).close();
    DiskArray disk = DiskArray::open(world, path);
    Model model({10});
    check::equal(errno_of([&] { disk.write_all_async(model.memory({{0}, {10}}), {{0}, {10}}).wait(); }),
                 EROFS);
    disk.close();
  });
}

TEST("a bad box at one process is an error at all") {
  const TemporaryDirectory directory;
  in_worlds(3, options_in(directory), [](World& world) {
    DiskArray disk(world, {10, 10}, ElementType::float64);
    Model model({20, 20});
    const Box good{{0, 0}, {5, 5}}, bad{{0, 0}, {5, 11}};
    const Box& box = world.rank() == 1 ? bad : good;
    const Error error = check::throws<Error>([&] { disk.write_all_async(model.memory(good), box).wait(); });
    check::equal(error.errno_value(), EINVAL);
    check::contains(error.what(), "[0:5, 0:11]");
    disk.close();
  });
}

TEST("other boxes at other processes of one section are an error at all") {
  const TemporaryDirectory directory;
  in_worlds(3, options_in(directory), [](World& world) {
    DiskArray disk(world, {10, 10}, ElementType::float64);
    GlobalArray array(world, {10, 10}, ElementType::float64);
    const Box box{{0, 0}, {5, world.rank() == 2 ? 4 : 5}};
    check::equal(errno_of([&] { disk.write_all_async(array, {.box = box}, box).wait(); }), EINVAL);
    disk.close();
  });
}

TEST("other global arrays at other processes are an error at all") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [](World& world) {
    const Box box{{0, 0}, {5, 5}};
    DiskArray disk(world, {10, 10}, ElementType::float64);
    GlobalArray first(world, {10, 10}, ElementType::float64), second(world, {10, 10}, ElementType::float64);
    GlobalArray& mine = world.rank() == 0 ? first : second;
    check::equal(errno_of([&] { disk.read_all_async(mine, {.box = box}, box).wait(); }), EINVAL);
    check::equal(errno_of([&] { disk.write_all_async(mine, {.box = box}, box).wait(); }), EINVAL);
    disk.close();
  });
}

TEST("a read that meets a write at another process is an error at all") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [](World& world) {
    const Box box{{0, 0}, {5, 5}};
    DiskArray disk(world, {10, 10}, ElementType::float64);
    GlobalArray array(world, {10, 10}, ElementType::float64);
    check::equal(errno_of([&] {
                   if (world.rank() == 0)
                     disk.write_all_async(array, {.box = box}, box).wait();
                   else
                     disk.read_all_async(array, {.box = box}, box).wait();
                 }),
                 EINVAL);
    disk.close();
  });
}

TEST("sections that do not fit are refused") {
  const TemporaryDirectory directory;
  in_worlds(1, options_in(directory), [](World& world) {
    DiskArray disk(world, {10, 10}, ElementType::float64);
    GlobalArray array(world, {10, 10}, ElementType::float64), numbers(world, {10, 10}, ElementType::int32);
    const Box box{{0, 0}, {4, 5}}, turned{{0, 0}, {5, 4}}, outside{{8, 8}, {12, 13}};
    check::equal(errno_of([&] { disk.write_all_async(array, {.box = turned}, box).wait(); }), EINVAL);
    check::equal(errno_of([&] { disk.write_all_async(array, {.box = outside}, box).wait(); }), EINVAL);
    check::equal(errno_of([&] { disk.write_all_async(array, {.box = box, .order = {0, 0}}, box).wait(); }),
                 EINVAL);
    check::equal(errno_of([&] { disk.write_all_async(numbers, {.box = box}, box).wait(); }), EINVAL);
    disk.write_all_async(array, {.box = turned, .order = {1, 0}}, box).wait();
    disk.close();
  });
}

TEST("an error that nobody waited for fails the close") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [](World& world) {
    DiskArray disk(world, {10}, ElementType::float64);
    Model model({20});
    (void)disk.write_all_async(model.memory({{0}, {20}}), {{0}, {20}});
    check::equal(errno_of([&] { disk.close(); }), EINVAL);
    disk.close();
  });
}

TEST("a closed array says so") {
  const TemporaryDirectory directory;
  in_worlds(1, options_in(directory), [](World& world) {
    DiskArray disk(world, {10}, ElementType::float64);
    Model model({10});
    disk.close();
    check::equal(errno_of([&] { disk.write_all_async(model.memory({{0}, {10}}), {{0}, {10}}).wait(); }),
                 EBADF);
  });
}

TEST("buffers that exceed the budget of one process are an error at all") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [](World& world) {
    DiskArray disk(world, {64}, ElementType::float64, {.chunk = {1}});
    Model model({64});
    const std::int64_t rest = world.budget().limit_bytes() - world.budget().used_bytes();
    if (world.rank() == 1) world.budget().reserve(rest, "everything");
    const Error error =
        check::throws<Error>([&] { disk.write_all_async(model.memory({{0}, {64}}), {{0}, {64}}).wait(); });
    check::equal(error.errno_value(), ENOMEM);
    check::contains(error.what(), "disk array");
    if (world.rank() == 1) world.budget().release(rest);
    disk.close();
  });
}

TEST("a flipped bit in the data is found by whoever reads it") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/array";
  const Extents shape{64, 64};
  const Box all = Box::whole(shape);
  in_worlds(2, options_in(directory), [&](World& world) {
    DiskArray disk(world, shape, ElementType::float64, {.path = path, .chunk = {16, 16}});
    Model model(shape);
    std::iota(model.data.begin(), model.data.end(), 0.0);
    disk.write_all_async(model.memory(all), all);
    disk.close();
    if (world.rank() == 0) {
      std::fstream file(path + "/component.0", std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(5000);
      file.put('x');
    }
    world.barrier();
    disk = DiskArray::open(world, path);
    const Error error = check::throws<Error>([&] { disk.read_all_async(model.memory(all), all).wait(); });
    check::equal(error.errno_value(), EIO);
    check::contains(error.what(), "component.0");
    check::contains(error.what(), "chunk");
    disk.close();
  });
}

TEST("an array may go as soon as a read has failed") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/array";
  const Extents shape{4096, 512};
  const Box all = Box::whole(shape), lower{{0, 0}, {2048, 512}}, upper{{2048, 0}, shape};
  in_worlds(2, options_in(directory), [&](World& world) {
    GlobalArray memory(world, shape, ElementType::float64);
    fill(memory, 1);
    for (int round = 0; round < 8; ++round) {
      auto disk = std::make_unique<DiskArray>(
          world, shape, ElementType::float64,
          DiskArrayOptions{.path = path, .overwrite = true, .chunk = {32, 512}, .group = 1});
      disk->write_all_async(memory, {.box = all}, all).wait();
      disk->close();
      if (world.rank() == 0) {
        const std::string name = round == 0 ? "component.0" : "component.0." + std::to_string(round);
        std::fstream file(path + "/" + name, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(31 * (128 << 10) + 5000);  // in the last chunk here of the first half
        file.put('x');
      }
      world.barrier();
      disk = std::make_unique<DiskArray>(DiskArray::open(world, path));
      Request first = disk->read_all_async(memory, {.box = lower}, lower);
      Request second = disk->read_all_async(memory, {.box = upper}, upper);  // begun while the first fails
      check::equal(errno_of([&] { first.wait(); }), EIO);
      disk.reset();
      world.barrier();
    }
  });
}

TEST("reads that were begun ahead while one failed bring what they asked for") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/array";
  const Extents shape{1024, 512}, quarter{256, 512};
  const Box all = Box::whole(shape), whole = Box::whole(quarter);
  in_worlds(2, options_in(directory), [&](World& world) {
    GlobalArray source(world, shape, ElementType::float64);
    fill(source, 2);
    DiskArray disk(world, shape, ElementType::float64, {.path = path, .chunk = {32, 512}, .group = 1});
    disk.write_all_async(source, {.box = all}, all).wait();
    disk.close();
    if (world.rank() == 0) {
      std::fstream file(path + "/component.0", std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(3 * (128 << 10) + 5000);  // in the last chunk here of the first quarter
      file.put('x');
    }
    world.barrier();
    for (int round = 0; round < 8; ++round) {
      disk = DiskArray::open(world, path);
      std::vector<std::unique_ptr<GlobalArray>> quarters;
      std::vector<Request> reads;
      for (std::int64_t first = 0; first < shape[0]; first += quarter[0]) {
        quarters.push_back(std::make_unique<GlobalArray>(world, quarter, ElementType::float64));
        reads.push_back(disk.read_all_async(*quarters.back(), {.box = whole},
                                            {{first, 0}, {first + quarter[0], quarter[1]}}));
      }
      check::equal(errno_of([&] { reads[0].wait(); }), EIO);
      for (std::size_t i = 1; i < reads.size(); ++i) {
        reads[i].wait();
        Model got(quarter), expected(quarter);
        quarters[i]->get(whole, got.memory(whole));
        for_each_index(whole, [&](const Extents& index) {
          expected.data[expected.at(index)] =
              value_at({index[0] + static_cast<std::int64_t>(i) * quarter[0], index[1]}, 2);
        });
        check::is_true(got.data == expected.data);
      }
      disk.close();
    }
  });
}

TEST_MAIN
