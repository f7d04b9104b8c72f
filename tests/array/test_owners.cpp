// What owners do for other processes: reading ahead, reports of damage, procedures that read arrays.
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <numeric>
#include <thread>

#include "array/arrays.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/error.hpp"
#include "outcore/trace.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using outcore::test::for_each_index;
using outcore::test::in_worlds;
using outcore::test::Model;

namespace {

WorldOptions options_in(const TemporaryDirectory& directory) {
  return {.memory_bytes = 1 << 30, .scratch = directory.path(), .node_for_each_process = true};
}

int errno_of(const std::function<void()>& body) {
  return check::throws<Error>(body).errno_value();
}

}  // namespace

TEST("an array that its owner has dropped is an error at the one who asks") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [](World& world) {
    DiskArray disk(world, {10}, ElementType::float64, {.chunk = {5}, .group = 1});
    Model model({10});
    world.barrier();
    if (world.rank() == 1) disk.drop();
    world.barrier();
    if (world.rank() == 0) {
      const Error error = check::throws<Error>([&] { disk.get({{0}, {10}}, model.memory({{0}, {10}})); });
      check::equal(error.errno_value(), EBADF);
      check::equal(error.rank(), 1);
      disk.get({{0}, {5}}, model.memory({{0}, {5}}));
      (void)disk.put_async({{5}, {10}}, model.memory({{5}, {10}}));
      check::equal(errno_of([&] { disk.sync(); }), EBADF);
      disk.sync();  // it was delivered
    }
    world.barrier();
  });
}

TEST(
    "procedures that read arrays of one another wait for memory without keeping the place of those who free "
    "it") {
  const TemporaryDirectory directory;
  WorldOptions options = options_in(directory);
  options.memory_bytes = 64 << 20;  // 4 MiB on their way at a time
  in_worlds(2, options, [](World& world) {
    const Extents shape{1024, 1024};
    DiskArray disk(world, shape, ElementType::float64, {.chunk = {512, 1024}, .group = 1});
    const Box here{{512 * world.rank(), 0}, {512 * world.rank() + 512, 1024}};
    const Box there{{512 * (1 - world.rank()), 0},
                    {512 * (1 - world.rank()) + 512, 512}};  // 512 rows of 4 KiB
    Model model(shape);
    std::ranges::fill(model.data, 1.0 + world.rank());
    disk.put(here, model.memory(here));
    const auto sums = world.register_procedure("sum",
                                               [&](Call call) {
                                                 Model part(shape);
                                                 disk.get(there, part.memory(there));
                                                 const double sum =
                                                     std::accumulate(part.data.begin(), part.data.end(), 0.0);
                                                 call.answer(std::as_bytes(std::span(&sum, 1)));
                                               },
                                               {.may_block = true});
    world.barrier();
    std::vector<double> found(24);
    std::vector<Request> requests;
    for (double& each : found)
      requests.push_back(
          world.call(1 - world.rank(), sums, {}, {}, {.reply = std::as_writable_bytes(std::span(&each, 1))}));
    for (Request& each : requests) each.wait();
    for (const double each : found) check::equal(each, (1.0 + world.rank()) * 512 * 512);
    world.barrier();
    disk.close();
  });
}

TEST("what was prefetched is read by its owner then, and not again by the get") {
  const TemporaryDirectory directory;
  for (const int owner : {0, 1})
    in_worlds(2, options_in(directory), [&](World& world) {
      const Extents shape{64, 64};
      const Box all = Box::whole(shape);
      const std::string path = directory.path() + "/ahead" + std::to_string(owner);
      Model model(shape);
      std::iota(model.data.begin(), model.data.end(), 0.0);
      {
        DiskArray disk(world, shape, ElementType::float64, {.path = path, .chunk = {32, 64}, .group = 1});
        if (world.rank() == 0) disk.put(all, model.memory(all));
        disk.close();
      }
      DiskArray disk = DiskArray::open(world, path, true);
      const auto reads = [] {
        return trace::snapshot()
            .counters[std::size_t(trace::Layer::device)][std::size_t(trace::Op::read_async)];
      };
      if (world.rank() == 0) {
        trace::reset_counters();
        const Box box{{32 * owner, 0}, {32 * owner + 32, 64}};
        disk.prefetch(std::span(&box, 1));
        while (reads().count == 0) std::this_thread::yield();
        Model back(shape);
        disk.get(box, back.memory(box));
        for_each_index(box, [&](const Extents& index) {
          check::equal(back.data[back.at(index)], model.data[model.at(index)]);
        });
        check::equal(reads().count, 1);
      }
      world.barrier();
      disk.close();
    });
}

TEST("a get that meets damage is an error that names the place, at whoever asks") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [&](World& world) {
    const Extents shape{64, 64};
    const Box all = Box::whole(shape), damaged{{40, 0}, {41, 64}}, rest{{0, 0}, {32, 64}};
    const std::string path = directory.path() + "/damaged";
    Model model(shape);
    {
      DiskArray disk(world, shape, ElementType::float64, {.path = path, .chunk = {32, 64}, .group = 1});
      if (world.rank() == 0) disk.put(all, model.memory(all));
      disk.close();
    }
    if (world.rank() == 0) {
      std::fstream file(path + "/component.1", std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(8 * 64 * 8 + 5);
      file.put('x');
      check::is_true(file.good());
    }
    world.barrier();
    DiskArray disk = DiskArray::open(world, path, true);
    for (int i = 0; i < 2; ++i) {
      const Error error = check::throws<Error>([&] { disk.get(damaged, model.memory(damaged)); });
      check::equal(error.errno_value(), EIO);
      check::contains(error.what(), "component.1");
      check::contains(error.what(), "damaged: block 0 of slot 0");
    }
    disk.get(rest, model.memory(rest));
    world.barrier();
    disk.close();
  });
}

TEST("waiting for others in a procedure that must not block is an error, and nothing else") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory), [](World& world) {
    const Extents shape{8, 8};
    const Box all = Box::whole(shape);
    DiskArray disk(world, shape, ElementType::float64, {.chunk = {8, 8}, .group = 100});
    Model model(shape);
    const auto gets = world.register_procedure("get", [&](Call call) {
      disk.get(all, model.memory(all));  // from process 0
      call.answer();
    });
    if (world.rank() == 0) check::equal(errno_of([&] { world.call(1, gets, {}).wait(); }), EDEADLK);
    world.barrier();
    disk.get(all, model.memory(all));
    world.barrier();
    disk.close();
  });
}

TEST_MAIN
